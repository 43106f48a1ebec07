#include "kube_node/withdraw.h"

#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/withdraw.h"
#include "objects/release.h"
#include "pods/release.h"

namespace drover {

Result<int> run_kube_withdraw(const cli::KubeWithdrawOptions& options) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  DROVER_TRY(const auto api, kube::ApiClient::open(std::move(config)));
  DROVER_CHECK_OK(objects::release_definitions(*api));
  if (const auto& lease = options.control_plane; !lease.name.empty())
    DROVER_CHECK_OK(pods::release_tasks(*api, lease.name_space, lease.name));
  if (const auto& lease = options.scheduler; !lease.name.empty())
    DROVER_CHECK_OK(pods::remove_lease(*api, lease.name_space, lease.name));
  return kube::withdraw(*api);
}

}  // namespace drover
