#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "base/units.h"
#include "placement/cluster_impl.h"
#include "placement/explain.h"
#include "placement/filter.h"
#include "placement/part_fit.h"
#include "placement/words.h"

namespace drover::placement {
namespace {

NodeState empty_state(const NodeEntry& entry) {
  auto state = make_node_state(*entry.node, *entry.kind);
  state.healthy = entry.kind->all;
  state.cordon = 0;
  return state;
}

std::string has_text(std::int64_t most, std::size_t nodes) {
  const auto amount = most == 0 ? "none" : std::to_string(most);
  return nodes == 1  ? "this machine has " + amount
         : most == 0 ? "no node has any"
                     : "the largest node has " + amount;
}

/// The GPUs that there are: "8 × NVIDIA A100-SXM4-40GB with 39.6 GiB".
std::string gpus_there(const NodeTable& nodes) {
  std::map<std::pair<std::string, std::uint64_t>, int> counts;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot)
    for (const auto& device : nodes.at(slot).kind->devices) ++counts[{device.model, device.memory_bytes}];
  std::vector<std::string> words;
  for (const auto& [gpu, count] : counts)
    words.push_back(fmt::format("{} × {}{}", count, gpu.first,
                                gpu.second == 0 ? "" : " with " + format_bytes(gpu.second)));
  if (words.empty()) return has_text(0, nodes.size());
  constexpr std::size_t kMost = 4;  // kinds; a message is no inventory
  if (words.size() > kMost) {
    words.resize(kMost);
    words.emplace_back("others");
  }
  return (nodes.size() == 1 ? "this machine has " : "there are ") + list_text(words, "and");
}

std::string ask_at_most(std::int64_t most) {
  return most == 0 ? "" : fmt::format("ask for at most {}", most);
}

/// Too few GPUs of what the claim asks for, read up to a dimension of its filter.
Failure too_few_devices(const Shape& shape, const NodeTable& nodes, const Obstacle& obstacle) {
  if (obstacle.which == Obstacle::kTogether)
    return fail(ErrorKind::kInvalid, "No node has GPUs for all claims at once",
                "ask for fewer, or for other ones", "/gpus");
  const auto claim = static_cast<std::size_t>(obstacle.which);
  std::int64_t most = 0;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot)
    most = std::max<std::int64_t>(
        most, std::popcount(allowed_devices(*nodes.at(slot).kind, shape.request().gpus[claim].filter,
                                            shape.request().share, obstacle.dimension)));
  const auto count = shape.request().gpus[claim].count;
  const auto path = fmt::format("/gpus/{}", claim);
  const auto& filter = shape.request().gpus[claim].filter;
  auto what = gpus_text(count);
  auto field = std::string("/count");
  switch (obstacle.dimension) {
    case Dimension::kModel:
      what = fmt::format("{} × {}", count, or_text(filter.models));
      if (most == 0) field = "/filter/models";
      break;
    case Dimension::kGpuMemory:
      what += fmt::format(
          " with {}", format_bytes(std::max(filter.min_memory_bytes, shape.request().share.memory_bytes)));
      if (most == 0) field = "/filter/min_memory_bytes";
      break;
    case Dimension::kComputeCapability:
      what += fmt::format(" of compute capability {}.{}", filter.min_compute_capability->major,
                          filter.min_compute_capability->minor);
      if (most == 0) field = "/filter/min_compute_capability";
      break;
    case Dimension::kEcc:
      what += *filter.ecc ? " with ECC" : " without ECC";
      if (most == 0) field = "/filter/ecc";
      break;
    case Dimension::kDriver:
      what += fmt::format(" with driver {}", filter.min_driver);
      if (most == 0) field = "/filter/min_driver";
      break;
    default:
      break;
  }
  return fail(ErrorKind::kInvalid,
              fmt::format("{} {} asked for, and {}", what, are(count),
                          most == 0 ? gpus_there(nodes) : has_text(most, nodes.size())),
              ask_at_most(most), path + field);
}

Failure too_few_gpus(const Shape& shape, const NodeTable& nodes) {
  std::int64_t most = 0;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot)
    most = std::max<std::int64_t>(most, nodes.at(slot).kind->count());
  return fail(
      ErrorKind::kInvalid,
      fmt::format("{} {} asked for, but {}", gpus_text(shape.gpus()), are(shape.gpus()),
                  has_text(most, nodes.size())),
      most == 0 ? "'drover doctor' says why no GPU was found; 'drover serve --simulate' makes simulated ones"
                : ask_at_most(most),
      "/gpus/0/count");
}

Failure too_small_host(const Shape& shape, const NodeTable& nodes, Dimension dimension) {
  const auto owner = nodes.size() == 1 ? "this machine" : "the largest node";
  const auto& request = shape.request();
  if (dimension == Dimension::kCpus) {
    std::int64_t most = 0;
    for (std::size_t slot = 0; slot < nodes.size(); ++slot)
      most = std::max(most, nodes.at(slot).state.milli_cpus);
    return fail(ErrorKind::kInvalid,
                fmt::format("{} CPUs are asked for, but {} has {}", cpus_text(request.milli_cpus), owner,
                            cpus_text(most)),
                "ask for fewer", "/milli_cpus");
  }
  std::uint64_t most = 0;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot)
    most = std::max(most, nodes.at(slot).node->memory_bytes);
  return fail(ErrorKind::kInvalid,
              fmt::format("{} of memory are asked for, but {} has {}", format_bytes(request.memory_bytes),
                          owner, format_bytes(most)),
              "ask for less", "/memory_bytes");
}

std::string path_of(const Obstacle& obstacle) {
  switch (obstacle.dimension) {
    case Dimension::kAttribute:
      return fmt::format("/attributes/{}", obstacle.which);
    case Dimension::kInterconnect:
      return "/interconnect";
    case Dimension::kDifferentModels:
      return "/different_models";
    case Dimension::kCpuAffinity:
      return "/cpu_affinity";
    case Dimension::kNic:
      return "/nic";
    case Dimension::kShare:
      return "/share";
    case Dimension::kParts:
      return "/part";
    default:
      return "/gpus";
  }
}

}  // namespace

Status Cluster::Impl::possible(const Shape& shape) const {
  if (nodes.size() == 0) return fail(ErrorKind::kInvalid, "There are no nodes");
  std::optional<Obstacle> furthest;
  const NodeEntry* node = nullptr;
  NodeState furthest_state;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
    const auto& entry = nodes.at(slot);
    auto state = empty_state(entry);
    auto found = obstacle(state, *with_all_parts(entry.node), shape);
    if (!found) found = host_obstacle(state, shape.request());
    if (!found) return {};
    if (furthest && *found <= *furthest) continue;
    furthest = found;
    node = &entry;
    furthest_state = std::move(state);
  }
  switch (furthest->dimension) {
    case Dimension::kGpuCount:
      return too_few_gpus(shape, nodes);
    case Dimension::kModel:
    case Dimension::kGpuMemory:
    case Dimension::kComputeCapability:
    case Dimension::kEcc:
    case Dimension::kDriver:
      return too_few_devices(shape, nodes, *furthest);
    case Dimension::kCpus:
    case Dimension::kMemory:
      return too_small_host(shape, nodes, furthest->dimension);
    default:
      return fail(
          ErrorKind::kInvalid,
          fmt::format("No node could hold this: {} {}", nodes.size() == 1 ? "this machine" : node->node->name,
                      clause(shape, *furthest, {furthest_state, *node->node}, true)),
          "", path_of(*furthest));
  }
}

}  // namespace drover::placement
