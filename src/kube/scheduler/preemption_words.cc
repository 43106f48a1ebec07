#include "kube/scheduler/preemption_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover::kube::scheduler {
namespace {

constexpr std::size_t kLongestPodName = 253;

/// As Kubernetes names pods: words of small letters, digits and '-', joined by dots.
bool is_pod_name(std::string_view name) {
  const auto is_letter_or_digit = [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9'); };
  const auto may_be_inside = [&](char c) { return is_letter_or_digit(c) || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kLongestPodName && std::ranges::all_of(name, may_be_inside) &&
         is_letter_or_digit(name.front()) && is_letter_or_digit(name.back());
}

}  // namespace

std::string to_string(const Preemption& preemption) {
  const auto& [lent, pod] = preemption;
  if (pod.empty())
    return fmt::format("ended by the scheduler to make room for a pod {}",
                       lent ? "whose queue takes back what it had lent" : "with a higher priority");
  return fmt::format("ended by the scheduler to make room for the pod '{}', {}", pod,
                     lent ? "whose queue takes back what it had lent" : "which has a higher priority");
}

std::optional<Preemption> read_preemption(std::string_view message) {
  const auto begin = message.find('\''), end = message.rfind('\'');
  std::string pod;
  if (begin != end) {
    pod = message.substr(begin + 1, end - begin - 1);
    if (!is_pod_name(pod)) return std::nullopt;
  }
  for (const bool lent : {false, true})
    if (Preemption read{lent, pod}; to_string(read) == message) return read;
  return std::nullopt;
}

}  // namespace drover::kube::scheduler
