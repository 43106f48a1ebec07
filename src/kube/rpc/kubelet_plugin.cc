#include "kube/rpc/kubelet_plugin.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/files.h"
#include "protocol/plugin_registration.grpc.pb.h"

namespace drover::kube {

class KubeletPlugin::Registration final : public pluginregistration::Registration::Service {
 public:
  Registration(const KubeletPluginOptions& options, std::string endpoint)
      : options_(options), endpoint_(std::move(endpoint)) {}

  grpc::Status GetInfo(grpc::ServerContext* /*context*/, const pluginregistration::InfoRequest* /*request*/,
                       pluginregistration::PluginInfo* info) override {
    info->set_type(options_.type);
    info->set_name(options_.name);
    info->set_endpoint(endpoint_);
    for (const auto& version : options_.versions) info->add_supported_versions(version);
    return grpc::Status::OK;
  }

  grpc::Status NotifyRegistrationStatus(
      grpc::ServerContext* /*context*/, const pluginregistration::RegistrationStatus* status,
      pluginregistration::RegistrationStatusResponse* /*response*/) override {
    if (status->plugin_registered())
      options_.registered("");
    else
      options_.registered(status->error().empty() ? "no reason given" : status->error());
    return grpc::Status::OK;
  }

 private:
  const KubeletPluginOptions& options_;
  const std::string endpoint_;
};

KubeletPlugin::KubeletPlugin(KubeletPluginOptions options, std::vector<grpc::Service*> services)
    : options_(std::move(options)),
      folder_(options_.kubelet_folder + "/plugins/" + options_.name),
      services_(std::move(services)),
      registration_(std::make_unique<Registration>(options_, folder_ + "/" + options_.socket)) {}

KubeletPlugin::~KubeletPlugin() {
  registration_server_.reset();
  server_.reset();
}

Status KubeletPlugin::keep() {
  if (!server_ || !server_->is_there()) {
    DROVER_TRY(const auto folder, Directory::create(folder_, 0750));
    // The old one would take the new one's place away with it.
    server_.reset();
    DROVER_TRY(server_, SocketServer::listen(folder.path() + "/" + options_.socket, services_));
  }
  if (!registration_server_ || !registration_server_->is_there()) {
    DROVER_TRY(const auto folder, Directory::create(options_.kubelet_folder + "/plugins_registry", 0750));
    registration_server_.reset();
    DROVER_TRY(registration_server_, SocketServer::listen(folder.path() + "/" + options_.name + "-reg.sock",
                                                          {registration_.get()}));
  }
  return {};
}

}  // namespace drover::kube
