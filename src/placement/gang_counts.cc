#include <algorithm>

#include "placement/gang_search.h"

namespace drover::placement {
namespace {

/// Counting each on its own is for gangs of few classes: it looks at all nodes for each.
constexpr std::size_t kMostClasses = 16;

/// What one member takes for certain. Of groups, the GPUs are counted elsewhere.
struct Take {
  std::int64_t gpus = 0;
  std::int64_t gpu_milli = 0;
};

Take take_of(const Request& request) {
  if (request.share.memory_bytes > 0) return {};
  const auto milli = std::int64_t{request.share.milli} * request.gpu_count();
  return {request.share.whole() ? request.gpu_count() : 0, milli};
}

bool exceeds_in_all(const std::vector<Free>& free, const std::vector<MemberClass>& classes) {
  std::int64_t gpus = 0;
  std::int64_t gpu_milli = 0;
  std::int64_t milli_cpus = 0;
  long double memory = 0;  // sums of bytes may overflow
  for (const auto& node : free) {
    gpus += node.gpus;
    gpu_milli += node.gpu_milli;
    milli_cpus += node.milli_cpus;
    memory += static_cast<long double>(node.memory_bytes);
  }
  for (const auto& [request, ranks, fitting] : classes) {
    const auto count = static_cast<std::int64_t>(ranks.size());
    const auto take = request->group.empty() ? take_of(*request) : Take{};
    gpus -= take.gpus * count;
    gpu_milli -= take.gpu_milli * count;
    milli_cpus -= request->milli_cpus * count;
    memory -= static_cast<long double>(request->memory_bytes) * static_cast<long double>(count);
  }
  return gpus < 0 || gpu_milli < 0 || milli_cpus < 0 || memory < 0;
}

}  // namespace

std::size_t most_on(const Free& free, const Request& request, std::size_t wanted) {
  auto most = static_cast<std::int64_t>(wanted);
  if (request.milli_cpus > 0) most = std::min(most, free.milli_cpus / request.milli_cpus);
  if (request.memory_bytes > 0)
    most = std::min(most, static_cast<std::int64_t>(free.memory_bytes / request.memory_bytes));
  if (!request.group.empty()) return static_cast<std::size_t>(most);
  const auto take = take_of(request);
  if (take.gpus > 0) most = std::min(most, free.gpus / take.gpus);
  if (take.gpu_milli > 0) most = std::min(most, free.gpu_milli / take.gpu_milli);
  return static_cast<std::size_t>(most);
}

bool exceeds(const std::vector<Free>& free, const std::vector<MemberClass>& classes) {
  if (exceeds_in_all(free, classes)) return true;
  if (classes.size() > kMostClasses) return false;
  return std::ranges::any_of(classes, [&](const MemberClass& members) {
    auto rest = members.ranks.size();
    for (const auto& node : free) rest -= most_on(node, *members.request, rest);
    return rest > 0;
  });
}

}  // namespace drover::placement
