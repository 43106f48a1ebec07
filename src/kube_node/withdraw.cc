#include "kube_node/withdraw.h"

#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/withdraw.h"
#include "objects/release.h"

namespace drover {

Result<int> run_kube_withdraw(const std::string& kubeconfig) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(kubeconfig)));
  DROVER_TRY(const auto api, kube::ApiClient::open(std::move(config)));
  DROVER_CHECK_OK(objects::release_definitions(*api));
  return kube::withdraw(*api);
}

}  // namespace drover
