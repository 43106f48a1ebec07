#include "placement/schedule/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "placement/filter.h"

namespace drover::placement::schedule {
namespace {

bool may_be(const gpu::Device& device, const Request& request) {
  return device.memory_bytes.value_or(0) >= request.share.memory_bytes &&
         std::ranges::any_of(request.gpus, [&](const DeviceClaim& claim) {
           const auto& models = claim.filter.models;
           return models.empty() || std::ranges::any_of(models, [&](const auto& model) {
                    return model_matches(model, device.model);
                  });
         });
}

/// The memory of the smallest GPU that the share may be on: the larger the GPU, the less it counts, and a
/// limit must hold wherever it goes. 0 when there is none.
std::uint64_t smallest_gpu(const Cluster& cluster, const Request& request) {
  std::uint64_t smallest = 0;
  for (const auto& name : cluster.nodes())
    for (const auto& device : cluster.node(name)->inventory.devices)
      if (may_be(device, request))
        smallest = smallest == 0 ? *device.memory_bytes : std::min(smallest, *device.memory_bytes);
  return smallest;
}

std::int64_t milli_of(const Cluster& cluster, const Request& request) {
  if (request.share.memory_bytes == 0) return request.share.milli;
  const auto memory = smallest_gpu(cluster, request);
  if (memory == 0) return 1000;
  __extension__ using Wide = unsigned __int128;
  const auto share = Wide{request.share.memory_bytes} * 1000;
  return static_cast<std::int64_t>((share + memory - 1) / memory);
}

}  // namespace

Bounds bounds_of(const Limits& limits) {
  Bounds bounds{limits.gpu_milli, limits.milli_cpus, std::nullopt};
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (limits.memory_bytes) bounds[2] = static_cast<std::int64_t>(std::min(*limits.memory_bytes, kMost));
  return bounds;
}

Load& operator+=(Load& a, const Load& b) {
  for (std::size_t i = 0; i < kDimensions; ++i) a[i] += b[i];
  return a;
}

Load& operator-=(Load& a, const Load& b) {
  for (std::size_t i = 0; i < kDimensions; ++i) a[i] -= b[i];
  return a;
}

Load negative(const Load& load) {
  Load result{};
  return result -= load;
}

Load Demand::total() const {
  auto sum = own;
  for (const auto& [group, milli] : groups) sum[0] += milli;
  return sum;
}

Demand demand_of(const Cluster& cluster, const Gang& gang) {
  Demand demand;
  for (const auto& member : gang.members) {
    const auto gpus = member.gpu_count() == 0 ? 0 : member.gpu_count() * milli_of(cluster, member);
    if (member.group.empty()) {
      demand.own[0] += gpus;
    } else {
      auto& of_group = demand.groups[member.group];
      of_group = std::max(of_group, gpus);
    }
    demand.own[1] += member.milli_cpus;
    demand.own[2] += static_cast<std::int64_t>(member.memory_bytes);
  }
  return demand;
}

Load total_of(const Cluster& cluster) {
  Load total{};
  for (const auto& name : cluster.nodes()) {
    const auto& node = *cluster.node(name);
    total[0] += 1000 * static_cast<std::int64_t>(node.inventory.devices.size());
    total[1] += node.milli_cpus;
    total[2] += static_cast<std::int64_t>(node.memory_bytes);
  }
  for (auto& amount : total) amount = std::max<std::int64_t>(amount, 1);
  return total;
}

std::string amount_text(std::size_t dimension, std::int64_t amount) {
  if (dimension == 2)
    return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(amount, 0))) + " of memory";
  return fmt::format("{:.10g} {}{}", static_cast<double>(amount) / 1000, dimension == 0 ? "GPU" : "CPU",
                     amount == 1000 ? "" : "s");
}

std::string load_text(const Load& load) {
  for (std::size_t i = 0; i < kDimensions; ++i)
    if (load[i] > 0) return amount_text(i, load[i]);
  return "nothing";
}

}  // namespace drover::placement::schedule
