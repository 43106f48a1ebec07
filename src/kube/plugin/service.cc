#include "kube/plugin/service.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "protocol/device_plugin.grpc.pb.h"

namespace drover::kube {
namespace {

// How long a call that was cancelled may go unnoticed.
constexpr std::chrono::milliseconds kPollPause{100};

v1beta1::ListAndWatchResponse list_of(const std::vector<OfferedDevice>& devices) {
  v1beta1::ListAndWatchResponse list;
  for (const auto& device : devices) {
    auto& shown = *list.add_devices();
    shown.set_id(device.id);
    shown.set_health(device.trouble.empty() ? "Healthy" : "Unhealthy");
    if (device.numa_node) shown.mutable_topology()->add_nodes()->set_id(*device.numa_node);
  }
  return list;
}

void write(const ContainerGrant& grant, v1beta1::ContainerAllocateResponse& answer) {
  answer.mutable_envs()->insert(grant.environment.begin(), grant.environment.end());
  answer.mutable_annotations()->insert(grant.annotations.begin(), grant.annotations.end());
  for (const auto& mount : grant.mounts) {
    auto& made = *answer.add_mounts();
    made.set_container_path(mount.container_path);
    made.set_host_path(mount.host_path);
    made.set_read_only(!mount.writable);
  }
  for (const auto& device : grant.devices) {
    auto& made = *answer.add_devices();
    made.set_container_path(device.container_path);
    made.set_host_path(device.host_path);
    made.set_permissions("rw");
  }
  for (const auto& name : grant.cdi_devices) answer.add_cdi_devices()->set_name(name);
}

grpc::Status status_of(const Error& error) {
  const auto code = error.kind == ErrorKind::kInvalid ? grpc::StatusCode::INVALID_ARGUMENT
                                                      : grpc::StatusCode::FAILED_PRECONDITION;
  return {code, to_string(error)};
}

}  // namespace

class PluginService::Methods : public v1beta1::DevicePlugin::Service {
 public:
  Methods(Pool& pool, const std::string& resource, std::function<void()> unwatched)
      : pool_(pool), resource_(resource), unwatched_(std::move(unwatched)) {}

  bool is_watched() const { return watchers_ > 0; }
  int watches() const { return watches_; }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_get_preferred_allocation_available(true);
    options->set_pre_start_required(pool_.is_asked_at_start());
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    ++watchers_;
    ++watches_;
    auto offer = pool_.wait(resource_, 0, {});
    bool connected = writer->Write(list_of(offer.devices));
    while (connected && !context->IsCancelled()) {
      auto next = pool_.wait(resource_, offer.version, kPollPause);
      // A kubelet writes down who has what when it is told of devices. What pods have left would else be
      // theirs again after a restart, and those to whom it was given would be rejected.
      if (next.devices != offer.devices || next.left != offer.left)
        connected = writer->Write(list_of(next.devices));
      offer = std::move(next);
    }
    --watchers_;
    unwatched_();
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* answer) override {
    for (const auto& container : request->container_requests()) {
      const auto& available = container.available_deviceids();
      const auto& must = container.must_include_deviceids();
      const auto chosen = pool_.prefer(resource_, {available.begin(), available.end()},
                                       {must.begin(), must.end()}, container.allocation_size());
      auto& made = *answer->add_container_responses();
      for (const auto& id : chosen) made.add_deviceids(id);
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override {
    for (const auto& container : request->container_requests()) {
      const auto& ids = container.devices_ids();
      const auto granted = pool_.allocate(resource_, {ids.begin(), ids.end()});
      if (!granted) return status_of(granted.error());
      write(*granted, *answer->add_container_responses());
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse*) override {
    const auto& ids = request->devices_ids();
    const auto started = pool_.start(resource_, {ids.begin(), ids.end()});
    return started ? grpc::Status::OK : status_of(started.error());
  }

 private:
  Pool& pool_;
  const std::string& resource_;
  const std::function<void()> unwatched_;
  std::atomic<int> watchers_ = 0, watches_ = 0;
};

PluginService::PluginService(Pool& pool, std::string resource, std::function<void()> unwatched)
    : resource_(std::move(resource)),
      methods_(std::make_unique<Methods>(pool, resource_, std::move(unwatched))) {}

PluginService::~PluginService() = default;

grpc::Service* PluginService::service() {
  return methods_.get();
}

bool PluginService::is_watched() const {
  return methods_->is_watched();
}

int PluginService::watches() const {
  return methods_->watches();
}

}  // namespace drover::kube
