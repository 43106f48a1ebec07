// The program: hands the command line to the CLI, with the parts that work on this machine itself.

#include <unistd.h>

#include <string_view>

#include "api_server.h"
#include "cli/cli.h"
#include "container/fetch/fetcher.h"
#include "container/oom_score.h"
#include "container/shim.h"
#include "doctor.h"
#include "driver/hook/hook.h"
#include "gpus_here.h"
#include "hardware.h"
#include "kube_node/run.h"
#include "kube_node/sandbox_relay.h"
#include "kube_node/withdraw.h"
#include "kube_scheduler/ask.h"
#include "kube_scheduler/run.h"
#include "serve.h"

int main(int argc, char** argv) {
  using namespace drover;
  // A shim is started for every task: it goes its own short way.
  if (argc == 3 && std::string_view(argv[1]) == "shim")
    return container::run_shim(argv[2], container::kReadinessDescriptor);
  if (argc == 2 && std::string_view(argv[1]) == "fetcher") return container::run_fetcher();
  if (argc == 4 && std::string_view(argv[1]) == "fetcher" && std::string_view(argv[2]) == "--into")
    return container::run_fetcher_into(argv[3]);
  if (argc >= 4 && std::string_view(argv[1]) == container::kWithOomScore)
    return container::run_with_oom_score(argv + 2);
  // Half in a container, whose processes /proc does not show by their own numbers: nothing of a library's
  // that looks at it runs at the end, as the search for leaks of a sanitizer does.
  if (argc >= 2 && std::string_view(argv[1]) == driver::kCdiHookCommand)
    ::_exit(driver::run_cdi_hook({argv + 2, static_cast<std::size_t>(argc - 2)}));
  cli::Hooks hooks;
  hooks.version = DROVER_VERSION;
  hooks.serve = serve;
  hooks.restore = restore;
  hooks.kube_node = run_kube_node;
  hooks.kube_scheduler = run_kube_scheduler;
  hooks.kube_withdraw = run_kube_withdraw;
  hooks.kube_sandboxes = relay_sandboxes;
  hooks.kube_explain = explain_on_cluster;
  hooks.kube_plan = plan_on_cluster;
  hooks.kube_queues = queues_on_cluster;
  hooks.api_server = api_server_of;
  hooks.doctor = examine_machine;
  hooks.gpus_here = gpus_here();
  hooks.cdi_specification = [](const std::string& driver_root) -> Result<cdi::Specification> {
    DROVER_TRY(const auto hardware, Hardware::open({"/", "", driver_root, {}, false}));
    return hardware.cdi_specification(hardware.discover());
  };
  return cli::run_cli(argc, argv, hooks);
}
