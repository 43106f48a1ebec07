#include "kube_node/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace drover {

Status fitness_of(const kube::ContainerRuntime& runtime) {
  if (runtime.cdi == kube::CdiSupport::kYes) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("{} {} does not do what CDI specifications say, or does not tell: containers get "
                          "device nodes and the driver's volume instead, and claims are not served",
                          runtime.name, runtime.version),
              runtime.advice);
}

Status check_nothing_is_forgotten(const std::vector<kube::ContainerUse>& containers) {
  std::set<std::string> pods;
  for (const auto& use : containers)
    if (use.forgotten) pods.insert(fmt::format("'{}/{}'", use.pod_namespace, use.pod));
  if (pods.empty()) return {};
  return fail(ErrorKind::kConflict,
              fmt::format("the kubelet has lost its record of the devices of {}: nobody else is given their "
                          "GPUs until they have ended",
                          fmt::join(pods, ", ")));
}

Status check_given(const MissingFiles& missing, std::size_t gpus) {
  if (missing.empty()) return {};
  return fail(ErrorKind::kUnavailable, fmt::format("{} of {} GPUs are given to no pod: {}", missing.size(),
                                                   gpus, missing.begin()->second));
}

std::string why_not_served(const kube::dra::DriverState& driver) {
  std::vector<std::string> words;
  for (const auto* trouble : {&driver.sockets, &driver.registration, &driver.recovery, &driver.slices})
    if (!trouble->empty()) words.push_back(*trouble);
  if (words.empty() && !driver.registered) return "the kubelet has not registered the driver yet";
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace drover
