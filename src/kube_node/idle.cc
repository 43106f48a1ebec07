#include "kube_node/idle.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>

#include "base/files.h"
#include "kube/usage/attribution.h"

namespace drover {
namespace {

/// Of each of those who are asked; GPUs have three.
constexpr std::chrono::seconds kPatienceOfLook{2};

/// Whether this program is in the machine's own PID namespace: elsewhere the driver tells of no process of
/// others.
bool sees_processes() {
  constexpr ino_t kInitial = 0xEFFFFFFC;
  struct stat own{};
  return ::stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == kInitial;
}

}  // namespace

Result<kube::IdleTimes> KubeIdle::look() {
  const std::lock_guard lock(mutex_);
  DROVER_TRY(const auto told,
             kube::list_pod_resources(kube::pod_resources_socket(options_.kubelet), kPatienceOfLook));
  DROVER_TRY(const auto running, kube::list_containers(options_.runtime_endpoint, kPatienceOfLook));
  kube::IdlePods::Sight sight;
  DROVER_TRY(sight.uids, kube::list_pod_uids(options_.runtime_endpoint, kPatienceOfLook));
  sight.usage = gpus_.work_done();
  sight.holders = kube::gpu_holders(gpus_.inventory(), gpus_.mig(), {options_.driver, options_.node_name},
                                    told.containers, running);
  if (sees_processes())
    sight.owner_of = [owner_of = kube::owner_by_cgroup(running)](std::uint32_t pid) {
      return owner_of(read_file(fmt::format("/proc/{}/cgroup", pid)).value_or(""));
    };
  return pods_.update(sight, kube::IdlePods::Clock::now());
}

}  // namespace drover
