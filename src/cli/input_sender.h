#pragma once

// Sends standard input to a task on a thread of its own, from its start on. A connection that is lost,
// because the daemon restarts, is made again, and goes on at the byte that the task had not taken. At a
// terminal every key goes to the task, its size follows ours, and Ctrl-P Ctrl-Q leaves. Create it before
// other threads: it blocks a signal.

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/frames.h"
#include "base/result.h"
#include "cli/client.h"
#include "cli/foreground.h"
#include "cli/terminal.h"
#include "cli/unsent.h"

namespace drover::cli {

struct InputOptions {
  bool reads = true;           ///< standard input; else only the size of the terminal is sent
  bool is_terminal = false;    ///< at both ends
  bool redraw = false;         ///< what the task shows is to be drawn anew
  std::function<void()> left;  ///< by the keys for it; the terminal is as it was
};

class InputSender {
 public:
  InputSender(Client client, std::string task, InputOptions options);
  /// The terminal is as it was.
  ~InputSender();
  InputSender(const InputSender&) = delete;
  InputSender& operator=(const InputSender&) = delete;

  /// The task runs now. May be called by any thread.
  void begin();

 private:
  enum class Next { kAgain, kEnd };

  void run();
  /// False when it is to end instead.
  bool wait_for_begin();
  Result<Upgraded> connect() const;
  Next converse(Upgraded connection);
  void greet(int socket);
  void send_rest(int socket);
  void send_size(int socket);
  void read_input(int socket);
  /// False when nothing more is to be sent.
  bool handle(const Frame& frame, int socket);

  Client client_;
  std::string task_;
  InputOptions options_;
  std::string session_;
  Unsent unsent_;
  LeaveKeys keys_;
  bool greeted_ = false;  ///< on this connection
  bool ended_ = false;    ///< standard input
  std::optional<RawTerminal> raw_;
  UniqueFd begun_, quit_, resized_;
  std::thread thread_;
};

/// foreground.follow(), with the input of the one task that is followed.
Result<std::vector<nlohmann::json>> follow_with_input(const Client& client, const std::string& task,
                                                      Foreground& foreground, InputOptions options);

}  // namespace drover::cli
