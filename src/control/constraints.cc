#include "control/constraints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace drover::control {
namespace {

using workload::ConstraintKind;

constexpr std::size_t kLongestExpression = 1024;
constexpr std::int64_t kMostMemory = 1 << 20;  ///< of one compiled expression, in bytes

RE2::Options options() {
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kMostMemory);
  return options;
}

/// Several values of one attribute, GPU models for instance, count as one where values are counted.
std::string joined(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

bool any_matches(const std::vector<std::string>& values, const std::string& expression) {
  return !alike({values.begin(), values.end()}, expression).empty();
}

/// How many of the machines have each value of the attribute.
std::map<std::string, int> counts_of(const std::string& attribute,
                                     const std::vector<MachineAttributes>& machines) {
  std::map<std::string, int> counts;
  for (const auto& machine : machines)
    if (const auto found = machine.find(attribute); found != machine.end()) ++counts[joined(found->second)];
  return counts;
}

std::string instances(int count) {
  return fmt::format("{} {}", count, count == 1 ? "instance" : "instances");
}

/// GROUP_BY: no group has more than one instance more than another. `groups` values are known to be, if some
/// have not been seen.
std::optional<std::string> uneven(const std::string& attribute, const std::string& value, int here,
                                  const std::map<std::string, int>& counts, int groups) {
  int fewest = here;
  for (const auto& [other, count] : counts) fewest = std::min(fewest, count);
  const auto seen = static_cast<int>(counts.size()) + (counts.contains(value) ? 0 : 1);
  if (seen < groups) fewest = 0;
  if (here <= fewest) return std::nullopt;
  return fmt::format("its instances are to be spread over {}, and '{}' has {} already, another value fewer",
                     attribute, value, instances(here));
}

Status check_expression(const std::string& text) {
  if (text.size() > kLongestExpression)
    return fail(ErrorKind::kInvalid,
                fmt::format("A regular expression has at most {} characters", kLongestExpression));
  const RE2 compiled(text, options());
  if (compiled.ok()) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("'{}' is not a regular expression: {}", text, compiled.error()), "",
              "/constraints");
}

}  // namespace

int amount_in(const workload::PlacementConstraint& constraint) {
  int number = 0;
  const auto& text = constraint.value;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string> alike(const std::set<std::string>& values, const std::string& expression) {
  const RE2 compiled(expression, options());
  std::vector<std::string> found;
  if (!compiled.ok()) return found;  // a broken expression matches nothing
  std::ranges::copy_if(values, std::back_inserter(found),
                       [&](const auto& value) { return RE2::FullMatch(value, compiled); });
  return found;
}

std::optional<std::string> refusal(const workload::PlacementConstraint& constraint,
                                   const MachineAttributes& machine,
                                   const std::vector<MachineAttributes>& others) {
  const auto& attribute = constraint.attribute;
  const auto& wanted = constraint.value;
  const auto found = machine.find(attribute);
  if (found == machine.end()) {
    if (constraint.kind == ConstraintKind::kUnlike) return std::nullopt;
    return fmt::format("this machine has no attribute '{}'", attribute);
  }
  const auto& values = found->second;
  const auto value = joined(values);
  const bool is_wanted = std::ranges::find(values, wanted) != values.end();
  const auto counts = counts_of(attribute, others);
  const auto here = counts.contains(value) ? counts.at(value) : 0;
  switch (constraint.kind) {
    case ConstraintKind::kUnique:
      if (here == 0) return std::nullopt;
      return fmt::format("no two of its instances may have the same {}, and one is on '{}'", attribute,
                         value);
    case ConstraintKind::kMaxPer:
      if (here < amount_in(constraint)) return std::nullopt;
      return fmt::format("at most {} may have the same {}, and so many are on '{}'",
                         instances(amount_in(constraint)), attribute, value);
    case ConstraintKind::kCluster: {
      const auto& all = wanted.empty() && !counts.empty() ? counts.begin()->first : wanted;
      if (all.empty() || all == value || is_wanted) return std::nullopt;
      return fmt::format("all its instances are to be on the {} '{}'; this machine's is '{}'", attribute, all,
                         value);
    }
    case ConstraintKind::kGroupBy:
      return uneven(attribute, value, here, counts, amount_in(constraint));
    case ConstraintKind::kLike:
      if (any_matches(values, wanted)) return std::nullopt;
      return fmt::format("the {} of this machine is '{}', which is not like '{}'", attribute, value, wanted);
    case ConstraintKind::kUnlike:
      if (!any_matches(values, wanted)) return std::nullopt;
      return fmt::format("the {} of this machine is '{}', which is like '{}'", attribute, value, wanted);
    case ConstraintKind::kIs:
      if (is_wanted) return std::nullopt;
      return fmt::format("the {} of this machine is '{}', not '{}'", attribute, value, wanted);
  }
  return std::nullopt;
}

Status check_constraints(const workload::Service& service) {
  for (const auto& constraint : service.constraints)
    if (constraint.kind == ConstraintKind::kLike || constraint.kind == ConstraintKind::kUnlike)
      DROVER_CHECK_OK(check_expression(constraint.value));
  return {};
}

}  // namespace drover::control
