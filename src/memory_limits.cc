#include "memory_limits.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/files.h"
#include "container/cgroup.h"

namespace drover {
namespace {

constexpr auto kDriverPatience = std::chrono::seconds(5);
constexpr int kMostCalls = 16;  ///< that may be waiting for a driver that does not answer

Failure no_answer() {
  return fail(ErrorKind::kUnavailable, "The NVIDIA driver does not answer: a limit of memory was asked for",
              "look at what the kernel says of it (dmesg), and whether 'nvidia-smi' returns");
}

/// The call goes on when nobody waits for it any more.
Status within_patience(const std::shared_ptr<const Hardware>& hardware,
                       std::function<Status(const gpu::Nvml&)> call) {
  static std::atomic<int> under_way = 0;
  if (++under_way > kMostCalls) {
    --under_way;
    return no_answer();
  }
  std::packaged_task<Status()> task([hardware, call = std::move(call)]() -> Status {
    const auto nvml = hardware->shared_nvml();
    auto status = *nvml ? call(**nvml) : Status(Failure(nvml->error()));
    --under_way;
    return status;
  });
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(kDriverPatience) == std::future_status::ready) return answer.get();
  return no_answer();
}

}  // namespace

std::string own_unified_group() {
  const auto hierarchies = container::find_hierarchies();
  const auto own = read_file("/proc/self/cgroup");
  return hierarchies && own ? container::own_unified_folder(*hierarchies, *own) : "";
}

MemoryLimits::MemoryLimits(std::shared_ptr<const Hardware> hardware)
    : hardware_(std::move(hardware)), own_group_(own_unified_group()) {}

Result<container::MemoryLimiter> MemoryLimits::limiter(const std::vector<share::KernelLimit>& limits) const {
  DROVER_CHECK_OK(within_patience(hardware_, [limits, group = own_group_](const gpu::Nvml& nvml) -> Status {
    for (const auto& limit : limits) DROVER_CHECK_OK(share::can_limit_memory(nvml, limit.gpu, group));
    return {};
  }));
  return [hardware = hardware_, limits](const std::string& group) {
    return within_patience(hardware, [group, limits](const gpu::Nvml& nvml) {
      return share::limit_memory(nvml, group, limits);
    });
  };
}

Status MemoryLimits::change(const std::string& group, const std::vector<share::KernelLimit>& limits) const {
  return within_patience(hardware_, [group, limits](const gpu::Nvml& nvml) {
    return share::change_memory_limits(nvml, group, limits);
  });
}

void MemoryLimits::unlimit(const std::string& group, const std::vector<std::string>& gpus) const {
  const auto done = within_patience(
      hardware_, [group, gpus](const gpu::Nvml& nvml) { return share::unlimit_memory(nvml, group, gpus); });
  if (!done) spdlog::warn("{}", to_string(done.error()));
}

}  // namespace drover
