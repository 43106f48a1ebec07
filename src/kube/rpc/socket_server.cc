#include "kube/rpc/socket_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

namespace drover::kube {
namespace {

constexpr int kMostThreads = 64;
constexpr int kMostMessageBytes = 4 << 20;
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

}  // namespace

bool FileIdentity::operator==(const FileIdentity& other) const {
  return device == other.device && inode == other.inode && changed.tv_sec == other.changed.tv_sec &&
         changed.tv_nsec == other.changed.tv_nsec;
}

FileIdentity identity_of(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_ctim};
}

Result<SocketServer> SocketServer::listen(const std::string& path,
                                          const std::vector<grpc::Service*>& services) {
  // A hidden file: the kubelet takes any other socket that it sees for a plugin.
  const auto name = path.rfind('/') + 1;
  const auto made = path.substr(0, name) + "." + path.substr(name);
  if (made.size() > kLongestPath)
    return fail(ErrorKind::kInvalid,
                fmt::format("the socket's path '{}' is longer than {} bytes", path, kLongestPath - 1));
  ::unlink(made.c_str());
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostThreads / 4);
  builder.AddListeningPort("unix:" + made, grpc::InsecureServerCredentials());
  for (auto* service : services) builder.RegisterService(service);
  auto server = builder.BuildAndStart();
  if (!server || ::chmod(made.c_str(), 0600) != 0 || ::rename(made.c_str(), path.c_str()) != 0)
    return fail(ErrorKind::kUnavailable, fmt::format("could not serve at the socket '{}'", path),
                "look whether its folder is there and writable");
  return SocketServer(path, std::move(server));
}

SocketServer::SocketServer(std::string path, std::unique_ptr<grpc::Server> server)
    : path_(std::move(path)), server_(std::move(server)) {
  const auto identity = identity_of(path_);
  device_ = identity.device;
  inode_ = identity.inode;
}

SocketServer::SocketServer(SocketServer&&) noexcept = default;

SocketServer& SocketServer::operator=(SocketServer&& other) noexcept {
  if (this == &other) return *this;
  stop();
  path_ = std::move(other.path_);
  device_ = other.device_;
  inode_ = other.inode_;
  server_ = std::move(other.server_);
  return *this;
}

SocketServer::~SocketServer() {
  stop();
}

bool SocketServer::is_there() const {
  const auto now = identity_of(path_);
  return now.device == device_ && now.inode == inode_;
}

void SocketServer::stop() {
  if (!server_) return;
  if (is_there()) ::unlink(path_.c_str());
  // The deadline has passed: what is under way is cancelled at once.
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

}  // namespace drover::kube
