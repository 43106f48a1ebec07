#pragma once

// gRPC services on a unix socket, as the kubelet's plugins serve them. Handlers run on threads of gRPC's, one
// for each call that is under way, so a service locks what it shares.
//
//   DROVER_TRY(auto server, SocketServer::listen(folder + "/drover.sock", {&service}));

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace drover::kube {

/// Tells whether a file is still the same one: a new file may get an old one's number.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  timespec changed = {};

  bool operator==(const FileIdentity& other) const;
};
/// What all files that are not there have in common is FileIdentity().
FileIdentity identity_of(const std::string& path);

class SocketServer {
 public:
  /// Takes the place of what lies at `path` in one step, so whoever sees the socket can connect. The services
  /// must outlive this. Only root may connect.
  static Result<SocketServer> listen(const std::string& path, const std::vector<grpc::Service*>& services);
  SocketServer(SocketServer&&) noexcept;
  SocketServer& operator=(SocketServer&&) noexcept;
  /// Cancels calls that are under way, waits for their handlers, and removes the socket, unless another
  /// file is there by now.
  ~SocketServer();

  /// Whether the socket is still at its path. The kubelet removes the sockets of its folder when it starts.
  bool is_there() const;
  const std::string& path() const { return path_; }

 private:
  SocketServer(std::string path, std::unique_ptr<grpc::Server> server);
  void stop();

  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace drover::kube
