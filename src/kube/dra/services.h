#pragma once

// What the kubelet calls: the driver's services in every version that kubelets since 1.32 speak. Handlers run
// on threads of gRPC's.

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
  std::function<Result<PreparedClaim>(const ClaimReference&)> prepare;
  std::function<Status(const std::string& uid)> unprepare;
};

class Services {
 public:
  /// `board` must outlive it.
  Services(ServiceCalls calls, const HealthBoard& board);
  ~Services();

  std::vector<grpc::Service*> all() const;
  /// Their names, as the driver registers with: the newer first.
  static std::vector<std::string> names();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace drover::kube::dra
