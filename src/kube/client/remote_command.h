#pragma once

// A command in the container of a pod, or the container's own first process, by the API server: its input and
// outputs as descriptors, over a WebSocket with the channels of Kubernetes (v5.channel.k8s.io, or v4 of older
// servers). Whoever lets go of it ends the connection; what the command has started may go on.

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/config.h"

namespace drover::kube {

struct RemoteCommandRequest {
  std::string name_space, pod, container;
  std::vector<std::string> command = {};  ///< none: the first process, which runs already
  bool tty = false;
  int rows = 24, columns = 80;                                   ///< of the terminal
  std::chrono::milliseconds opening = std::chrono::seconds(30);  ///< so long until it runs, at most
};

/// Not thread safe.
class RemoteCommand {
 public:
  /// Blocks until it runs, or soon after a stop is requested. Errors are those of kube::Api.
  static Result<std::unique_ptr<RemoteCommand>> start(const ServerConfig& config,
                                                      const RemoteCommandRequest& request,
                                                      const std::stop_token& stop = {});
  ~RemoteCommand();
  RemoteCommand(const RemoteCommand&) = delete;
  RemoteCommand& operator=(const RemoteCommand&) = delete;

  // Non-blocking. With a terminal input() and output() are the same, and errors() is -1.
  int input() const;
  int output() const;
  int errors() const;
  /// The command reads the end of its input, where the server can say that (v5).
  void close_input();
  void resize(int rows, int columns);
  /// Becomes readable when it has ended.
  int ended() const;
  /// After it has ended: its exit status; an Error when it could not be started, or the connection broke.
  Result<int> wait();
  /// Ends the connection.
  void close();

 private:
  class Session;
  explicit RemoteCommand(std::shared_ptr<Session> session);
  std::shared_ptr<Session> session_;
};

/// What a server says of a command's end, an object of kind Status: its exit status, or why there is none.
Result<int> read_exit_status(const std::string& text);

}  // namespace drover::kube
