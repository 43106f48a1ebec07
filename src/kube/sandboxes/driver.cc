#include "kube/sandboxes/driver.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/rpc/kubelet_plugin.h"
#include "kube/sandboxes/names.h"
#include "protocol/csi_v1.grpc.pb.h"

namespace drover::kube {
namespace {

constexpr const char* kVersion = "1.0.0";  ///< of the interface
constexpr const char* kPodContext = "csi.storage.k8s.io/";

grpc::Status grpc_status(const Status& status) {
  if (status) return grpc::Status::OK;
  const auto code = status.error().kind == ErrorKind::kInvalid    ? grpc::StatusCode::INVALID_ARGUMENT
                    : status.error().kind == ErrorKind::kNotFound ? grpc::StatusCode::NOT_FOUND
                                                                  : grpc::StatusCode::INTERNAL;
  return {code, to_string(status.error())};
}

class IdentityService final : public csi::v1::Identity::Service {
 public:
  explicit IdentityService(const std::string& version) : version_(version) {}

  grpc::Status GetPluginInfo(grpc::ServerContext* /*context*/,
                             const csi::v1::GetPluginInfoRequest* /*request*/,
                             csi::v1::GetPluginInfoResponse* response) override {
    response->set_name(kSandboxDriver);
    response->set_vendor_version(version_);
    return grpc::Status::OK;
  }
  grpc::Status GetPluginCapabilities(grpc::ServerContext* /*context*/,
                                     const csi::v1::GetPluginCapabilitiesRequest* /*request*/,
                                     csi::v1::GetPluginCapabilitiesResponse* /*response*/) override {
    return grpc::Status::OK;
  }
  grpc::Status Probe(grpc::ServerContext* /*context*/, const csi::v1::ProbeRequest* /*request*/,
                     csi::v1::ProbeResponse* /*response*/) override {
    return grpc::Status::OK;
  }

 private:
  const std::string& version_;
};

class NodeService final : public csi::v1::Node::Service {
 public:
  NodeService(const SandboxDriverOptions& options, SandboxStore& store) : options_(options), store_(store) {}

  grpc::Status NodePublishVolume(grpc::ServerContext* /*context*/,
                                 const csi::v1::NodePublishVolumeRequest* request,
                                 csi::v1::NodePublishVolumeResponse* /*response*/) override {
    const auto& said = request->volume_context();
    const auto text = [&](const std::string& key) {
      const auto found = said.find(key);
      return found == said.end() ? std::string() : found->second;
    };
    SandboxOrder order{.volume = request->volume_id(),
                       .target = request->target_path(),
                       .uid = text(fmt::format("{}pod.uid", kPodContext)),
                       .name_space = text(fmt::format("{}pod.namespace", kPodContext)),
                       .pod = text(fmt::format("{}pod.name", kPodContext)),
                       .owner = text(kSandboxOwner)};
    if (text(fmt::format("{}ephemeral", kPodContext)) != "true")
      return grpc_status(fail(ErrorKind::kInvalid, "Only volumes that a pod has in its own spec are made",
                              "name the driver below 'csi' in the pod"));
    return told(store_.publish(order), "A sandbox was not made");
  }

  grpc::Status NodeUnpublishVolume(grpc::ServerContext* /*context*/,
                                   const csi::v1::NodeUnpublishVolumeRequest* request,
                                   csi::v1::NodeUnpublishVolumeResponse* /*response*/) override {
    return told(store_.unpublish(request->volume_id(), request->target_path()), "A sandbox was not kept");
  }

  grpc::Status NodeGetCapabilities(grpc::ServerContext* /*context*/,
                                   const csi::v1::NodeGetCapabilitiesRequest* /*request*/,
                                   csi::v1::NodeGetCapabilitiesResponse* /*response*/) override {
    return grpc::Status::OK;
  }
  grpc::Status NodeGetInfo(grpc::ServerContext* /*context*/, const csi::v1::NodeGetInfoRequest* /*request*/,
                           csi::v1::NodeGetInfoResponse* response) override {
    response->set_node_id(options_.node);
    return grpc::Status::OK;
  }

 private:
  grpc::Status told(const Status& status, const char* what) const {
    if (!status && options_.warn) options_.warn(to_string(context(status.error(), what)));
    return grpc_status(status);
  }

  const SandboxDriverOptions& options_;
  SandboxStore& store_;
};

}  // namespace

struct SandboxDriver::Parts {
  Parts(SandboxDriverOptions given, SandboxStore& store, std::function<void(const std::string&)> registered)
      : options(std::move(given)),
        identity(options.version),
        node(options, store),
        plugin({.kubelet_folder = options.kubelet_folder,
                .type = "CSIPlugin",
                .name = kSandboxDriver,
                .socket = "csi.sock",
                .versions = {kVersion},
                .registered = std::move(registered)},
               {&identity, &node}) {}

  const SandboxDriverOptions options;
  IdentityService identity;
  NodeService node;
  KubeletPlugin plugin;
};

SandboxDriver::SandboxDriver(SandboxDriverOptions options, SandboxStore& store)
    : parts_(std::make_unique<Parts>(std::move(options), store, [this](const std::string& error) {
        registered_ = error.empty();
        if (!error.empty() && parts_->options.warn)
          parts_->options.warn("the kubelet does not take the driver of sandboxes: " + error);
      })) {}

SandboxDriver::~SandboxDriver() = default;

Status SandboxDriver::keep() {
  return parts_->plugin.keep();
}

Status label_sandboxes(Api& api, const std::string& node, bool served) {
  const ObjectPath path{kNodes, "", node};
  DROVER_TRY(const auto now, api.get(path));
  const auto& labels = now.at("metadata").value("labels", nlohmann::json::object());
  if (served ? labels.value(kSandboxLabel, "") == "true" : !labels.contains(kSandboxLabel)) return {};
  const auto value = served ? nlohmann::json("true") : nlohmann::json();
  return api.patch(path, PatchType::kMerge, {{"metadata", {{"labels", {{kSandboxLabel, value}}}}}})
      .map([](const auto&) {});
}

}  // namespace drover::kube
