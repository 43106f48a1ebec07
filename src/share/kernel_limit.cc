#include "share/kernel_limit.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/units.h"
#include "gpu/memory_limit.h"

namespace drover::share {
namespace {

Status set_and_read(const gpu::Nvml& nvml, const std::string& group, const KernelLimit& limit) {
  const auto hard = limit.bytes / kLimitStep * kLimitStep;
  if (hard == 0)
    return fail(ErrorKind::kInvalid, fmt::format("A share of {} is too small", format_bytes(limit.bytes)),
                fmt::format("give at least {}", format_bytes(kLimitStep)));
  DROVER_CHECK_OK(gpu::set_memory_limit(nvml, limit.gpu, group, 0, hard));
  DROVER_TRY(const auto found, gpu::memory_limit(nvml, limit.gpu, group));
  if (found.soft == 0 && found.hard == hard) return {};
  return fail(ErrorKind::kUnavailable,
              fmt::format("The driver was to limit '{}' to {} bytes of GPU {}, and says {} (soft {})", group,
                          hard, limit.gpu, found.hard, found.soft));
}

bool is_gone(const std::string& group) {
  struct stat info{};
  return ::stat(group.c_str(), &info) != 0 && errno == ENOENT;
}

Status unlimit_one(const gpu::Nvml& nvml, const std::string& group, const std::string& gpu) {
  const auto before = gpu::memory_limit(nvml, gpu, group);
  if (before && before->is_none()) return {};
  DROVER_CHECK_OK(gpu::set_memory_limit(nvml, gpu, group, 0, gpu::kNoMemoryLimit));
  DROVER_TRY(const auto after, gpu::memory_limit(nvml, gpu, group));
  if (after.is_none()) return {};
  return fail(ErrorKind::kUnavailable,
              fmt::format("The driver keeps its limit of '{}' on GPU {}: {} bytes", group, gpu, after.hard));
}

}  // namespace

Status can_limit_memory(const gpu::Nvml& nvml, const std::string& gpu, const std::string& group) {
  DROVER_CHECK_OK(gpu::knows_memory_limits(nvml));
  if (group.empty())
    return fail(ErrorKind::kUnsupported, "Control groups are not, or not only, of version 2 here",
                "boot with systemd.unified_cgroup_hierarchy=1");
  return gpu::memory_limit(nvml, gpu, group).map([](auto&&) {});
}

Status limit_memory(const gpu::Nvml& nvml, const std::string& group, const std::vector<KernelLimit>& limits) {
  std::vector<std::string> touched;
  for (const auto& limit : limits) {
    touched.push_back(limit.gpu);
    if (auto set = set_and_read(nvml, group, limit); !set) {
      (void)unlimit_memory(nvml, group, touched);
      return set;
    }
  }
  return {};
}

Status change_memory_limits(const gpu::Nvml& nvml, const std::string& group,
                            const std::vector<KernelLimit>& limits) {
  Status all;
  for (const auto& limit : limits)
    if (auto one = set_and_read(nvml, group, limit); !one && all) all = std::move(one);
  return all;
}

Status unlimit_memory(const gpu::Nvml& nvml, const std::string& group, const std::vector<std::string>& gpus) {
  Status all;
  for (const auto& gpu : gpus) {
    if (is_gone(group)) return {};
    auto one = unlimit_one(nvml, group, gpu);
    if (!one && all && !is_gone(group)) all = std::move(one);
  }
  return all;
}

}  // namespace drover::share
