#include "kube/scheduler/unschedulable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/shorten.h"

namespace drover::kube::scheduler {
namespace {

using placement::Dimension;
using placement::Reason;

/// kube-scheduler's own words for it; none when it has none.
std::optional<std::string> known_words(const Reason& reason, const std::string& gpu_resource) {
  switch (reason.dimension) {
    case Dimension::kEligibility:
      return reason.text;
    case Dimension::kGpuCount:
    case Dimension::kFreeGpus:
    case Dimension::kShare:
      return "Insufficient " + gpu_resource;
    case Dimension::kCpus:
      return "Insufficient cpu";
    case Dimension::kMemory:
      return "Insufficient memory";
    case Dimension::kUnhealthy:
      return "node(s) had unhealthy GPUs";
    case Dimension::kCordon:
      return "node(s) were gone";
    default:
      return std::nullopt;
  }
}

/// What is said of nodes that would do.
std::string held_words(const placement::Reasons& reasons) {
  for (const auto& reason : reasons.list) {
    if (reason.nodes > 0) continue;
    if (reason.dimension == Dimension::kQuota) return "node(s) not asked because of a quota";
    if (reason.dimension == Dimension::kQueueLimit)
      return "node(s) not asked because of the limit of a queue";
    if (reason.dimension == Dimension::kGang)
      return reasons.nodes > 0 ? "node(s) had no room for the whole gang"
                               : "node(s) not asked before the whole gang can start";
    if (reason.dimension == Dimension::kHeld) return "node(s) not asked";
    if (reason.dimension == Dimension::kPreemption) return "node(s) waited for the end of pods";
  }
  return "node(s) were kept for others";
}

/// "1 Insufficient cpu, 2 node(s) were unschedulable": each node once.
std::string counted(const Waits& waits, const std::string& gpu_resource) {
  std::map<std::string, int> counts;
  int left = static_cast<int>(waits.nodes);
  for (const auto& reason : waits.reasons.list) {
    const int nodes = std::min(reason.nodes, left);
    if (nodes == 0) continue;
    left -= nodes;
    counts[known_words(reason, gpu_resource).value_or("node(s) had no GPUs as they are wanted")] += nodes;
  }
  if (left > 0) counts[held_words(waits.reasons)] += left;
  std::vector<std::string> words;
  for (const auto& [text, nodes] : counts) words.push_back(fmt::format("{} {}", nodes, text));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// What is missing on which nodes, as far as the counts have not said it.
std::string missing(const placement::Reasons& reasons) {
  std::string text;
  for (const auto& reason : reasons.list) {
    const bool said = reason.dimension == Dimension::kEligibility || reason.dimension == Dimension::kCordon;
    if (reason.nodes > 0 && !said)
      text += (text.empty() ? "" : "; ") + placement::describe_nodes(reason, reasons.nodes);
  }
  return text;
}

void add_sentence(std::string& message, std::string sentence) {
  if (sentence.empty()) return;
  if (sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  message += (message.empty() ? "" : " ") + sentence + ".";
}

}  // namespace

std::string unschedulable_message(const Waits& waits, const std::string& gpu_resource) {
  std::string message;
  const auto& reasons = waits.reasons;
  add_sentence(message, waits.nodes == 0 ? "no nodes available to schedule pods"
                                         : fmt::format("0/{} nodes are available: {}", waits.nodes,
                                                       counted(waits, gpu_resource)));
  add_sentence(message, missing(reasons));
  for (const auto& reason : reasons.list)
    if (reason.nodes == 0) add_sentence(message, reason.text);
  if (waits.place > 0)
    add_sentence(message, fmt::format("place {} of {} in the queue{}", waits.place, waits.of,
                                      waits.queue.empty() ? "" : fmt::format(" '{}'", waits.queue)));
  if (!reasons.remedies.empty())
    add_sentence(message, fmt::format("what helps: {}", fmt::join(reasons.remedies, "; or ")));
  return shortened(message, kLongestMessage);
}

}  // namespace drover::kube::scheduler
