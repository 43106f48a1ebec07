#include "placement/whole.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/units.h"

namespace drover::placement::whole {
namespace {

/// Larger is better.
struct Score {
  int links = 0;
  int weakest = 0;
  int nearness = 0;

  auto operator<=>(const Score&) const = default;
};

Score score_of(const gpu::Inventory& inventory, const std::vector<std::size_t>& chosen) {
  Score score{0, chosen.size() < 2 ? 0 : 1 << 20, 0};
  for (std::size_t a = 0; a < chosen.size(); ++a)
    for (std::size_t b = a + 1; b < chosen.size(); ++b) {
      const auto& link = inventory.links[chosen[a]][chosen[b]];
      score.links += link.nvlinks;
      score.weakest = std::min(score.weakest, link.nvlinks);
      score.nearness -= static_cast<int>(link.pcie);
    }
  return score;
}

/// Steps to the next combination of indices into 0..n-1 in lexicographic order; false after the last.
bool next_combination(std::vector<std::size_t>& chosen, std::size_t n) {
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (chosen[i] + (chosen.size() - i) >= n) continue;
    ++chosen[i];
    for (std::size_t j = i + 1; j < chosen.size(); ++j) chosen[j] = chosen[j - 1] + 1;
    return true;
  }
  return false;
}

std::vector<std::size_t> best_of(const gpu::Inventory& inventory, const std::vector<std::size_t>& free,
                                 std::size_t count) {
  std::vector<std::size_t> picks(count);
  for (std::size_t i = 0; i < count; ++i) picks[i] = i;
  std::vector<std::size_t> best;
  Score best_score;
  do {
    std::vector<std::size_t> devices(count);
    std::transform(picks.begin(), picks.end(), devices.begin(), [&](std::size_t pick) { return free[pick]; });
    const auto score = score_of(inventory, devices);
    if (best.empty() || score > best_score) {
      best = devices;
      best_score = score;
    }
  } while (next_combination(picks, free.size()));
  return best;
}

std::vector<std::size_t> free_devices(const Node& node, const Usage& usage) {
  const auto& devices = node.inventory.devices;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].unfit.empty() && !usage.gpus.contains(devices[i].uuid)) free.push_back(i);
  return free;
}

std::string gpus_text(int count) {
  return count == 1 ? "1 GPU" : fmt::format("{} GPUs", count);
}
std::string cpus_text(std::int64_t milli) {
  return fmt::format("{:g}", static_cast<double>(milli) / 1000);
}

std::string gpu_shortage(const Node& node, const Usage& usage, int wanted, std::size_t free) {
  const auto& devices = node.inventory.devices;
  const auto unfit = std::count_if(devices.begin(), devices.end(), [&](const auto& device) {
    return !device.unfit.empty() && !usage.gpus.contains(device.uuid);
  });
  auto text =
      fmt::format("{} wanted and {} of {} {} free", gpus_text(wanted) + (wanted == 1 ? " is" : " are"), free,
                  devices.size(), free == 1 ? "is" : "are");
  if (unfit > 0) text += fmt::format(", {} unfit", unfit);
  return text;
}

}  // namespace

Reasons shortages(const Node& node, const Usage& usage, const Request& request) {
  const auto free = free_devices(node, usage);
  Reasons reasons;
  const auto wanted = static_cast<std::size_t>(request.gpus);
  if (wanted > free.size()) reasons.list.push_back(gpu_shortage(node, usage, request.gpus, free.size()));
  if (usage.milli_cpus + request.milli_cpus > node.milli_cpus)
    reasons.list.push_back(
        fmt::format("{} CPUs are wanted and {} of {} are free", cpus_text(request.milli_cpus),
                    cpus_text(std::max<std::int64_t>(0, node.milli_cpus - usage.milli_cpus)),
                    cpus_text(node.milli_cpus)));
  if (usage.memory_bytes + request.memory_bytes > node.memory_bytes)
    reasons.list.push_back(fmt::format(
        "{} of memory are wanted and {} of {} are free", format_bytes(request.memory_bytes),
        format_bytes(node.memory_bytes > usage.memory_bytes ? node.memory_bytes - usage.memory_bytes : 0),
        format_bytes(node.memory_bytes)));
  return reasons;
}

std::variant<Decision, Reasons> place(const Node& node, const Usage& usage, const Request& request) {
  if (auto reasons = shortages(node, usage, request); !reasons.list.empty()) return reasons;
  Decision decision;
  if (request.gpus == 0) return decision;
  const auto wanted = static_cast<std::size_t>(request.gpus);
  for (const auto device : best_of(node.inventory, free_devices(node, usage), wanted))
    decision.gpus.push_back(node.inventory.devices[device].uuid);
  return decision;
}

Status possible(const Node& node, const Request& request) {
  const auto exist = node.inventory.devices.size();
  if (static_cast<std::size_t>(request.gpus) > exist)
    return fail(
        ErrorKind::kInvalid,
        fmt::format("{} asked for, but this machine has {}",
                    gpus_text(request.gpus) + (request.gpus == 1 ? " is" : " are"),
                    exist == 0 ? "none" : std::to_string(exist)),
        exist == 0
            ? "'drover doctor' says why no GPU was found; 'drover serve --simulate' makes simulated ones"
            : fmt::format("ask for at most {}", exist),
        "/gpus");
  if (request.milli_cpus > node.milli_cpus)
    return fail(ErrorKind::kInvalid,
                fmt::format("{} CPUs are asked for, but this machine has {}", cpus_text(request.milli_cpus),
                            cpus_text(node.milli_cpus)),
                "ask for fewer", "/cpus");
  if (request.memory_bytes > node.memory_bytes)
    return fail(ErrorKind::kInvalid,
                fmt::format("{} of memory are asked for, but this machine has {}",
                            format_bytes(request.memory_bytes), format_bytes(node.memory_bytes)),
                "ask for less", "/memory");
  return {};
}

}  // namespace drover::placement::whole
