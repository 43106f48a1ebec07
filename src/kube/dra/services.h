#pragma once

// What the kubelet calls: the driver's services in every version that kubelets since 1.32 speak, and its
// registration. Handlers run on threads of gRPC's.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/dra/book.h"
#include "kube/dra/claim.h"
#include "kube/dra/health_board.h"

namespace grpc {
class Service;
}

namespace drover::kube::dra {

/// What is behind the services. Thread safe.
struct ServiceCalls {
  std::string driver;
  std::string pool;
  std::string endpoint;  ///< path of the socket that serves the driver
  std::function<Result<PreparedClaim>(const ClaimReference&)> prepare;
  std::function<Status(const std::string& uid)> unprepare;
  /// What the kubelet says of the registration: "" when it is done, or what it does not like.
  std::function<void(const std::string& error)> registered;
};

class Services {
 public:
  /// `board` must outlive it.
  Services(ServiceCalls calls, const HealthBoard& board);
  ~Services();

  /// For the driver's own socket.
  std::vector<grpc::Service*> of_driver() const;
  /// For the socket by which the kubelet finds it.
  std::vector<grpc::Service*> of_registration() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace drover::kube::dra
