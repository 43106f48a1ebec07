#include "kube/dra/services.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "kube/dra/claim_specification.h"
#include "protocol/dra_health_v1.grpc.pb.h"
#include "protocol/dra_health_v1alpha1.grpc.pb.h"
#include "protocol/dra_v1.grpc.pb.h"
#include "protocol/dra_v1beta1.grpc.pb.h"

namespace drover::kube::dra {
namespace {

namespace dra_api = k8s::io::kubelet::pkg::apis::dra;

/// A pod has a handful.
constexpr int kMostClaims = 256;
/// The kubelet takes what it has not heard of for 30 s as unknown.
constexpr std::chrono::seconds kRepeat{10};
/// How soon the end of a stream is seen.
constexpr std::chrono::milliseconds kPollPause{200};

struct DraV1 {
  using Service = dra_api::v1::DRAPlugin::Service;
  using PrepareRequest = dra_api::v1::NodePrepareResourcesRequest;
  using PrepareResponse = dra_api::v1::NodePrepareResourcesResponse;
  using UnprepareRequest = dra_api::v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = dra_api::v1::NodeUnprepareResourcesResponse;
};
struct DraV1beta1 {
  using Service = dra_api::v1beta1::DRAPlugin::Service;
  using PrepareRequest = dra_api::v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = dra_api::v1beta1::NodePrepareResourcesResponse;
  using UnprepareRequest = dra_api::v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = dra_api::v1beta1::NodeUnprepareResourcesResponse;
};
struct HealthV1 {
  using Service = v1::DRAResourceHealth::Service;
  using Request = v1::NodeWatchResourcesRequest;
  using Response = v1::NodeWatchResourcesResponse;
  static constexpr auto kHealthy = v1::HEALTHY;
  static constexpr auto kUnhealthy = v1::UNHEALTHY;
};
struct HealthV1alpha1 {
  using Service = v1alpha1::DRAResourceHealth::Service;
  using Request = v1alpha1::NodeWatchResourcesRequest;
  using Response = v1alpha1::NodeWatchResourcesResponse;
  static constexpr auto kHealthy = v1alpha1::HEALTHY;
  static constexpr auto kUnhealthy = v1alpha1::UNHEALTHY;
};

template <typename Request>
grpc::Status check_request(const grpc::ServerContext& context, const Request& request) {
  if (context.IsCancelled()) return grpc::Status::CANCELLED;
  if (request.claims_size() <= kMostClaims) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT, fmt::format("more than {} claims at once", kMostClaims)};
}

template <typename Version>
class PluginService final : public Version::Service {
 public:
  explicit PluginService(const ServiceCalls& calls) : calls_(calls) {}

  grpc::Status NodePrepareResources(grpc::ServerContext* context,
                                    const typename Version::PrepareRequest* request,
                                    typename Version::PrepareResponse* response) override {
    if (auto checked = check_request(*context, *request); !checked.ok()) return checked;
    for (const auto& claim : request->claims()) {
      auto& answer = (*response->mutable_claims())[claim.uid()];
      answer.Clear();
      const auto prepared = calls_.prepare({claim.namespace_(), claim.name(), claim.uid()});
      if (!prepared) {
        answer.set_error(to_string(prepared.error()));
        continue;
      }
      for (const auto& device : prepared->devices) fill(*answer.add_devices(), claim.uid(), device.allocated);
    }
    return grpc::Status::OK;
  }

  grpc::Status NodeUnprepareResources(grpc::ServerContext* context,
                                      const typename Version::UnprepareRequest* request,
                                      typename Version::UnprepareResponse* response) override {
    if (auto checked = check_request(*context, *request); !checked.ok()) return checked;
    for (const auto& claim : request->claims()) {
      auto& answer = (*response->mutable_claims())[claim.uid()];
      if (const auto done = calls_.unprepare(claim.uid()); !done) answer.set_error(to_string(done.error()));
    }
    return grpc::Status::OK;
  }

 private:
  template <typename Device>
  void fill(Device& device, const std::string& uid, const AllocatedDevice& allocated) const {
    device.add_request_names(allocated.request);
    device.set_pool_name(calls_.pool);
    device.set_device_name(allocated.device);
    device.add_cdi_device_ids(cdi_device_id(calls_.driver, uid, allocated));
    if constexpr (requires { device.set_share_id(""); })
      if (!allocated.share_id.empty()) device.set_share_id(allocated.share_id);
  }

  const ServiceCalls& calls_;
};

template <typename Version>
class HealthService final : public Version::Service {
 public:
  HealthService(const ServiceCalls& calls, const HealthBoard& board) : calls_(calls), board_(board) {}

  grpc::Status NodeWatchResources(grpc::ServerContext* context, const typename Version::Request* /*request*/,
                                  grpc::ServerWriter<typename Version::Response>* writer) override {
    std::uint64_t seen = 0;
    auto last = std::chrono::steady_clock::time_point();
    while (!context->IsCancelled()) {
      const auto news = board_.wait(seen, kPollPause);
      const auto now = std::chrono::steady_clock::now();
      // Before the GPUs are known there is nothing to say.
      if (news.edition == 0 || (news.edition == seen && now - last < kRepeat)) continue;
      if (!writer->Write(response_of(news))) break;
      seen = news.edition;
      last = now;
    }
    return grpc::Status::OK;
  }

 private:
  typename Version::Response response_of(const HealthBoard::News& news) const {
    typename Version::Response response;
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    for (const auto& report : news.devices) {
      auto& device = *response.add_devices();
      device.mutable_device()->set_pool_name(calls_.pool);
      device.mutable_device()->set_device_name(report.device);
      device.set_health(report.ailment.empty() ? Version::kHealthy : Version::kUnhealthy);
      device.set_last_updated_time(now.time_since_epoch().count());
      device.set_message(report.ailment);
    }
    return response;
  }

  const ServiceCalls& calls_;
  const HealthBoard& board_;
};

}  // namespace

struct Services::Parts {
  Parts(ServiceCalls of, const HealthBoard& board)
      : calls(std::move(of)), health(calls, board), old_health(calls, board) {}

  ServiceCalls calls;
  PluginService<DraV1> plugin{calls};
  PluginService<DraV1beta1> old_plugin{calls};
  HealthService<HealthV1> health;
  HealthService<HealthV1alpha1> old_health;
};

Services::Services(ServiceCalls calls, const HealthBoard& board)
    : parts_(std::make_unique<Parts>(std::move(calls), board)) {}

Services::~Services() = default;

std::vector<grpc::Service*> Services::all() const {
  return {&parts_->plugin, &parts_->old_plugin, &parts_->health, &parts_->old_health};
}

std::vector<std::string> Services::names() {
  return {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};
}

}  // namespace drover::kube::dra
