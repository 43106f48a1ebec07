#include "kube/scheduler/labels.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestName = 63;
constexpr std::size_t kLongestPrefix = 253;

bool is_letter_or_digit(char letter) {
  return ('a' <= letter && letter <= 'z') || ('A' <= letter && letter <= 'Z') ||
         ('0' <= letter && letter <= '9');
}

/// What names and values of labels consist of.
bool is_name_part(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && is_letter_or_digit(text.front()) &&
         is_letter_or_digit(text.back()) && std::ranges::all_of(text, [](char letter) {
           return is_letter_or_digit(letter) || letter == '-' || letter == '_' || letter == '.';
         });
}

bool is_dns_name(std::string_view text) {
  if (text.empty() || text.size() > kLongestPrefix) return false;
  for (auto rest = text;;) {
    const auto part = rest.substr(0, rest.find('.'));
    if (part.empty() || part.front() == '-' || part.back() == '-') return false;
    for (const char letter : part)
      if (!is_letter_or_digit(letter) && letter != '-') return false;
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  return std::ranges::none_of(text, [](char letter) { return 'A' <= letter && letter <= 'Z'; });
}

/// As Go's ParseInt has it.
std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<LabelOperator> operator_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, LabelOperator>, 6> kSpelled{
      {{"In", LabelOperator::kIn},
       {"NotIn", LabelOperator::kNotIn},
       {"Exists", LabelOperator::kExists},
       {"DoesNotExist", LabelOperator::kDoesNotExist},
       {"Gt", LabelOperator::kGreater},
       {"Lt", LabelOperator::kLess}}};
  for (const auto& [spelled, meant] : kSpelled)
    if (spelled == text) return meant;
  return std::nullopt;
}

bool is_valid(const Requirement& requirement) {
  const auto& values = requirement.values;
  const auto is_number = [](const std::string& value) { return whole_number(value).has_value(); };
  switch (requirement.is) {
    case LabelOperator::kIn:
    case LabelOperator::kNotIn:
      if (values.empty()) return false;
      break;
    case LabelOperator::kExists:
    case LabelOperator::kDoesNotExist:
      if (!values.empty()) return false;
      break;
    case LabelOperator::kGreater:
    case LabelOperator::kLess:
      if (values.size() != 1 || !is_number(values.front())) return false;
      break;
  }
  return is_qualified_name(requirement.key) && std::ranges::all_of(values, [](const std::string& value) {
           return value.empty() || is_name_part(value);
         });
}

/// nullopt when the operator is none.
std::optional<Requirement> read_requirement(FieldReader& reader, const json& requirement) {
  const auto is = operator_of(reader.text(requirement, "operator"));
  if (!is) return std::nullopt;
  return Requirement{reader.text(requirement, "key"), *is, reader.texts(requirement, "values")};
}

bool compares(LabelOperator is) {
  return is == LabelOperator::kGreater || is == LabelOperator::kLess;
}

NodeTerm read_node_term(FieldReader& reader, const json& given) {
  NodeTerm term;
  for (const auto& item : reader.objects(given, "matchExpressions")) {
    auto requirement = read_requirement(reader, item);
    term.valid = term.valid && requirement && is_valid(*requirement);
    if (requirement) term.labels.push_back(std::move(*requirement));
  }
  for (const auto& item : reader.objects(given, "matchFields")) {
    auto requirement = read_requirement(reader, item);
    term.valid = term.valid && requirement && requirement->values.size() == 1 &&
                 (requirement->is == LabelOperator::kIn || requirement->is == LabelOperator::kNotIn);
    if (requirement) term.fields.push_back(std::move(*requirement));
  }
  return term;
}

bool field_matches(const Requirement& requirement, std::string_view node_name) {
  const auto value = requirement.key == "metadata.name" ? node_name : std::string_view();
  return (value == requirement.values.front()) == (requirement.is == LabelOperator::kIn);
}

}  // namespace

const std::string* label(const Labels& labels, std::string_view key) {
  const auto found = labels.find(key);
  return found == labels.end() ? nullptr : &found->second;
}

bool is_qualified_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return is_name_part(name);
  return is_dns_name(name.substr(0, slash)) && is_name_part(name.substr(slash + 1));
}

bool matches(const Requirement& requirement, const Labels& labels) {
  const auto* const value = label(labels, requirement.key);
  const auto is_one = [&] {
    return value != nullptr && std::ranges::find(requirement.values, *value) != requirement.values.end();
  };
  switch (requirement.is) {
    case LabelOperator::kIn:
      return is_one();
    case LabelOperator::kNotIn:
      return !is_one();
    case LabelOperator::kExists:
      return value != nullptr;
    case LabelOperator::kDoesNotExist:
      return value == nullptr;
    default:
      break;
  }
  const auto found = value == nullptr ? std::nullopt : whole_number(*value);
  const auto limit = requirement.values.empty() ? std::nullopt : whole_number(requirement.values.front());
  if (!found || !limit) return false;
  return requirement.is == LabelOperator::kGreater ? *found > *limit : *found < *limit;
}

bool matches(const Selector& selector, const Labels& labels) {
  return !selector.nothing && std::ranges::all_of(selector.requirements, [&](const Requirement& requirement) {
    return matches(requirement, labels);
  });
}

bool matches(const NodeTerms& terms, const Labels& labels, std::string_view node_name) {
  return std::ranges::any_of(terms, [&](const NodeTerm& term) {
    if (!term.valid || (term.labels.empty() && term.fields.empty())) return false;
    return std::ranges::all_of(term.labels, [&](const Requirement& it) { return matches(it, labels); }) &&
           (node_name.empty() || std::ranges::all_of(term.fields, [&](const Requirement& it) {
              return field_matches(it, node_name);
            }));
  });
}

std::optional<Selector> read_selector(FieldReader& reader, const json& selector) {
  Selector read;
  if (selector.is_null()) return read;
  read.nothing = false;
  for (auto& [key, value] : reader.text_map(selector, "matchLabels"))
    read.requirements.push_back({key, LabelOperator::kIn, {value}});
  for (const auto& item : reader.objects(selector, "matchExpressions")) {
    auto requirement = read_requirement(reader, item);
    if (!requirement || compares(requirement->is)) return std::nullopt;
    read.requirements.push_back(std::move(*requirement));
  }
  if (!std::ranges::all_of(read.requirements, is_valid)) return std::nullopt;
  return read;
}

std::optional<NodeTerms> read_node_terms(FieldReader& reader, const json& selector) {
  if (selector.is_null()) return std::nullopt;
  NodeTerms terms;
  for (const auto& term : reader.objects(selector, "nodeSelectorTerms"))
    terms.push_back(read_node_term(reader, term));
  return terms;
}

}  // namespace drover::kube::scheduler
