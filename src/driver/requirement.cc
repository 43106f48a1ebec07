#include "driver/requirement.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <utility>

#include "base/shorten.h"
#include "base/text.h"
#include "base/version.h"

namespace drover::driver {
namespace {

constexpr std::size_t kLongestRequirement = 64 << 10;

template <typename Each>
Status for_each_part(std::string_view text, char separator, Each each) {
  for (const auto& range : std::views::split(text, separator)) {
    const std::string_view part(range.begin(), range.end());
    if (!part.empty()) DROVER_CHECK_OK(each(part));
  }
  return {};
}

}  // namespace

Result<Requirement::Condition> Requirement::parse_condition(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators{
      {{"=", Operator::kEqual},
       {"!=", Operator::kNotEqual},
       {"<", Operator::kLess},
       {"<=", Operator::kLessEqual},
       {">", Operator::kGreater},
       {">=", Operator::kGreaterEqual}}};
  constexpr std::array<std::pair<std::string_view, std::string RequirementFacts::*>, 4> kNames{
      {{"cuda", &RequirementFacts::cuda},
       {"driver", &RequirementFacts::driver},
       {"arch", &RequirementFacts::arch},
       {"brand", &RequirementFacts::brand}}};
  constexpr std::string_view kSigns = "<>=!";
  const auto begin = std::min(text.find_first_of(kSigns), text.size());
  const auto end = std::min(text.find_first_not_of(kSigns, begin), text.size());
  const auto* const name = std::ranges::find(kNames, lower(text.substr(0, begin)),
                                             [](const auto& entry) { return std::string(entry.first); });
  const auto sign = text.substr(begin, end - begin);
  const auto* const comparison =
      std::ranges::find(kOperators, sign, &std::pair<std::string_view, Operator>::first);
  const auto value = text.substr(end);
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' is not understood: {}", shortened(std::string(text), 80), why),
                "conditions are like 'cuda>=12.2', 'driver<471', 'arch>=7.0' and 'brand=tesla'; ',' is and, "
                "a space is or");
  };
  if (name == kNames.end()) return wrong("it is about none of cuda, driver, arch and brand");
  if (comparison == kOperators.end()) return wrong("it has none of the operators = != < <= > >=");
  const bool by_name = name->second == &RequirementFacts::brand;
  const bool equality = comparison->second == Operator::kEqual || comparison->second == Operator::kNotEqual;
  if (by_name && !equality) return wrong("a brand is equal or not, not more or less");
  if (value.empty() || (!by_name && !Version::parse(value))) return wrong("it has no version");
  return Condition{name->second, comparison->second, lower(value)};
}

Result<Requirement> Requirement::parse(std::string_view text) {
  if (text.size() > kLongestRequirement)
    return fail(ErrorKind::kInvalid, fmt::format("it has more than {} bytes", kLongestRequirement),
                "write fewer conditions");
  Requirement requirement;
  DROVER_CHECK_OK(for_each_part(text, ' ', [&](std::string_view alternative) -> Status {
    std::vector<Condition> conditions;
    DROVER_CHECK_OK(for_each_part(alternative, ',', [&](std::string_view part) -> Status {
      DROVER_TRY(auto condition, parse_condition(part));
      conditions.push_back(std::move(condition));
      return {};
    }));
    requirement.alternatives_.push_back(std::move(conditions));
    return {};
  }));
  return requirement;
}

bool Requirement::holds(const Condition& condition, const RequirementFacts& facts) {
  const auto& fact = facts.*condition.fact;
  if (fact.empty()) return true;
  if (condition.fact == &RequirementFacts::brand)
    return (lower(fact) == condition.value) == (condition.comparison == Operator::kEqual);
  const auto has = Version::parse(fact);
  if (!has) return true;  // as good as not known
  const auto order = *has <=> *Version::parse(condition.value);
  switch (condition.comparison) {
    case Operator::kEqual:
      return order == 0;
    case Operator::kNotEqual:
      return order != 0;
    case Operator::kLess:
      return order < 0;
    case Operator::kLessEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool Requirement::met_by(const RequirementFacts& facts) const {
  return alternatives_.empty() || std::ranges::any_of(alternatives_, [&](const auto& conditions) {
           return std::ranges::all_of(conditions,
                                      [&](const Condition& condition) { return holds(condition, facts); });
         });
}

}  // namespace drover::driver
