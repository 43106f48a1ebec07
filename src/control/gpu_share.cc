#include "control/gpu_share.h"

#include <algorithm>
#include <limits>
#include <map>

namespace drover::control {
namespace {

using workload::Task;
__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kWhole = 1000;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// Something of which tasks have amounts, and of which `unit` is not divided by what is left over.
struct Kind {
  bool Unsaid::* unsaid;
  std::uint64_t unit;
  std::uint64_t (*amount)(const Task& task);
  void (*give)(Task& task, std::uint64_t amount);
  std::uint64_t (*of_node)(const placement::Node& node);
  std::optional<std::uint64_t> (*of_limits)(const placement::Limits& limits);
  std::optional<std::uint64_t> (*of_gpu)(const GpuShare& share);
};

std::optional<std::uint64_t> unsigned_of(std::optional<std::int64_t> value) {
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*value, 0));
}

const Kind kCpus = {
    &Unsaid::cpus,
    kWhole,
    [](const Task& task) { return *unsigned_of(task.resources.milli_cpus); },
    [](Task& task, std::uint64_t amount) { task.resources.milli_cpus = static_cast<std::int64_t>(amount); },
    [](const placement::Node& node) { return *unsigned_of(node.milli_cpus); },
    [](const placement::Limits& limits) { return unsigned_of(limits.milli_cpus); },
    [](const GpuShare& share) { return unsigned_of(share.milli_cpus); },
};

const Kind kMemory = {
    &Unsaid::memory,
    1ULL << 30,
    [](const Task& task) { return task.resources.memory_bytes; },
    [](Task& task, std::uint64_t amount) { task.resources.memory_bytes = amount; },
    [](const placement::Node& node) { return node.memory_bytes; },
    [](const placement::Limits& limits) { return limits.memory_bytes; },
    [](const GpuShare& share) { return share.memory_bytes; },
};

/// `amount` × `part` / `whole`, rounded down; all of it where there is nothing to divide by.
std::uint64_t part_of(std::uint64_t amount, std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return amount;
  return static_cast<std::uint64_t>(std::min<Wide>(Wide{amount} * part / whole, kUnlimited));
}

std::uint64_t gpus_of(const placement::Node& node) {
  return kWhole * node.inventory.devices.size();
}

/// Thousandths of GPUs that are its own; a share by memory is as if of the largest GPU.
std::uint64_t own_gpus(const Task& task, const placement::Node& node) {
  const auto& wanted = task.resources;
  if (!wanted.group.empty()) return 0;
  auto milli = static_cast<std::uint64_t>(wanted.share.milli);
  if (wanted.share.memory_bytes > 0) {
    std::uint64_t largest = 0;
    for (const auto& device : node.inventory.devices)
      largest = std::max(largest, device.memory_bytes.value_or(0));
    milli = largest == 0 ? 0 : part_of(kWhole, wanted.share.memory_bytes, largest);
  }
  return static_cast<std::uint64_t>(wanted.gpu_count()) * milli;
}

/// The CPUs on the NUMA nodes of GPUs, for each GPU there, where there are fewest.
std::uint64_t near_cpus(const placement::Node& node) {
  std::map<int, std::uint64_t> gpus;
  for (const auto& device : node.inventory.devices)
    if (device.numa_node) ++gpus[*device.numa_node];
  auto fewest = kUnlimited;
  for (const auto& numa : node.numa)
    if (const auto found = gpus.find(numa.id); found != gpus.end() && !numa.cpus.empty())
      fewest = std::min(fewest, kWhole * numa.cpus.size() / found->second);
  return fewest;
}

/// Of one kind, what the tasks of a job share out.
class Division {
 public:
  Division(const Kind& kind, const std::vector<Task>& tasks, const std::vector<Unsaid>& unsaid,
           const placement::Node& node)
      : kind_(kind), node_(node) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto gpus = own_gpus(tasks[i], node);
      gpus_.push_back(unsaid[i].*kind.unsaid ? gpus : 0);
      all_gpus_ += gpus_.back();
      if (gpus_.back() == 0) said_ += kind.amount(tasks[i]);
    }
  }

  /// What a task gets that wants its part.
  std::uint64_t of(const Task& task, std::size_t rank, const placement::Rules& rules, const GpuShare& share,
                   std::uint64_t near_for_each) const {
    const auto gpus = gpus_[rank];
    const auto offered = kind_.of_node(node_);
    const auto set = kind_.of_gpu(share);
    auto amount = std::min({set ? part_of(*set, gpus, kWhole) : part_of(offered, gpus, gpus_of(node_)),
                            left_over(offered, gpus), part_of(near_for_each, gpus, kWhole)});
    for (const auto& [whose, limit] : bounds_on(rules, task.queue, task.owner_name, task.name_space)) {
      const auto most = kind_.of_limits(limit);
      if (!most) continue;
      const auto limited = std::min(gpus_of(node_), unsigned_of(limit.gpu_milli).value_or(kUnlimited));
      amount = std::min({amount, left_over(*most, gpus), part_of(*most, gpus, limited)});
    }
    return std::max(amount / kind_.unit * kind_.unit, kind_.amount(task));
  }

  bool takes_part(std::size_t rank) const { return gpus_[rank] > 0; }

 private:
  /// Of so much, beside what others of the job have said.
  std::uint64_t left_over(std::uint64_t amount, std::uint64_t gpus) const {
    return part_of(amount - std::min(amount, said_), gpus, all_gpus_);
  }

  const Kind& kind_;
  const placement::Node& node_;
  std::vector<std::uint64_t> gpus_;  ///< thousandths, by rank, of those who get their part
  std::uint64_t all_gpus_ = 0;
  std::uint64_t said_ = 0;
};

}  // namespace

void give_gpu_shares(std::vector<Task>& tasks, const std::vector<Unsaid>& unsaid, const placement::Node& node,
                     const placement::Rules& rules, const GpuShare& share) {
  for (const auto* kind : {&kCpus, &kMemory}) {
    const Division division(*kind, tasks, unsaid, node);
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
      if (!division.takes_part(rank)) continue;
      auto& task = tasks[rank];
      const bool near = kind == &kCpus && task.resources.cpu_affinity == workload::Preference::kRequire;
      kind->give(task, division.of(task, rank, rules, share, near ? near_cpus(node) : kUnlimited));
    }
  }
}

}  // namespace drover::control
