#include "base/decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/shorten.h"
#include "base/units.h"

namespace drover {
namespace {

using nlohmann::json;

constexpr std::size_t kMostMistakes = 20;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

/// None when no integer of 64 bits is that number.
std::optional<std::int64_t> whole_number(const nlohmann::json& number) {
  constexpr double kTooLarge = 0x1p63;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (number.is_number_unsigned() && number.get<std::uint64_t>() > kMost) return std::nullopt;
  if (number.is_number_integer()) return number.get<std::int64_t>();
  const auto value = number.get<double>();
  if (value != std::floor(value) || value < -kTooLarge || value >= kTooLarge) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// Numbers and truth values are text when they stand in quotes.
std::string in_quotes(const json& value) {
  const bool plain = value.is_number() || value.is_boolean();
  return plain ? fmt::format("write it in quotes: \"{}\"", value.dump()) : "";
}

Error no_string(const json& value, std::string path) {
  return {ErrorKind::kInvalid, fmt::format("expected a string, found {}", value.type_name()),
          in_quotes(value), shortened(std::move(path))};
}

}  // namespace

std::string pointer_token(std::string_view name) {
  std::string token;
  for (char c : name) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

Decoder::Decoder(const json& value, std::vector<Error>& errors, std::string path)
    : value_(&value), errors_(&errors), path_(std::move(path)) {
  if (!value.is_object())
    errors_->push_back({ErrorKind::kInvalid, fmt::format("expected an object, found {}", value.type_name()),
                        "", path_.empty() ? "/" : path_});
}

const json* Decoder::value(const std::string& name) {
  known_.insert(name);
  if (!value_->is_object()) return nullptr;
  const auto it = value_->find(name);
  return it == value_->end() || it->is_null() ? nullptr : &*it;
}

std::string Decoder::path_of(const std::string& name) const {
  return path_ + "/" + pointer_token(name);
}

void Decoder::format(int known) {
  const auto found = integer("format", 1, std::numeric_limits<int>::max()).value_or(1);
  if (found > known)
    mistake("format", fmt::format("format {} is a newer Drover's; this one knows {}", found, known),
            "use the newer one");
}

void Decoder::mistake(const std::string& name, std::string message, std::string hint) {
  errors_->push_back({ErrorKind::kInvalid, shortened(std::move(message)), shortened(std::move(hint)),
                      shortened(path_of(name))});
}

std::optional<std::string> Decoder::string(const std::string& name) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_string()) return field->get<std::string>();
  errors_->push_back(no_string(*field, path_of(name)));
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> Decoder::duration(const std::string& name) {
  const auto text = string(name);
  if (!text) return std::nullopt;
  const auto duration = parse_duration(*text);
  if (duration) return *duration;
  mistake(name, duration.error().message, duration.error().hint);
  return std::nullopt;
}

std::optional<std::int64_t> Decoder::integer(const std::string& name, std::int64_t min, std::int64_t max) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_number()) {
    mistake(name, fmt::format("expected a whole number, found {}", field->type_name()));
    return std::nullopt;
  }
  const auto whole = whole_number(*field);
  if (whole && *whole >= min && *whole <= max) return whole;
  mistake(name, fmt::format("expected a whole number from {} to {}, found {}", min, max, field->dump()));
  return std::nullopt;
}

std::optional<double> Decoder::number(const std::string& name, double min, double max) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_number() && field->get<double>() >= min && field->get<double>() <= max)
    return field->get<double>();
  mistake(name, fmt::format("expected a number from {} to {}, found {}", min, max,
                            field->is_number() ? field->dump() : field->type_name()));
  return std::nullopt;
}

std::optional<bool> Decoder::boolean(const std::string& name) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_boolean()) return field->get<bool>();
  mistake(name, fmt::format("expected true or false, found {}", field->type_name()));
  return std::nullopt;
}

std::optional<std::vector<std::string>> Decoder::string_list(const std::string& name) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_array()) {
    mistake(name, fmt::format("expected a list of strings, found {}", field->type_name()),
            "write for example [\"one\", \"two\"]");
    return std::nullopt;
  }
  for (std::size_t i = 0; i < field->size(); ++i) {
    if ((*field)[i].is_string()) continue;
    errors_->push_back(no_string((*field)[i], fmt::format("{}/{}", path_of(name), i)));
    return std::nullopt;  // one of them is enough
  }
  return field->get<std::vector<std::string>>();
}

std::optional<std::vector<std::string>> Decoder::strings(const std::string& name) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_string()) return std::vector{field->get<std::string>()};
  return string_list(name);
}

std::optional<std::size_t> Decoder::choice(const std::string& name, std::span<const std::string_view> words) {
  const auto text = string(name);
  if (!text) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  mistake(name, fmt::format("'{}' is not known", *text),
          fmt::format("it is one of {}", fmt::join(words, ", ")));
  return std::nullopt;
}

std::optional<std::map<std::string, std::string>> Decoder::string_map(const std::string& name) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_object()) {
    mistake(name, fmt::format("expected an object whose values are strings, found {}", field->type_name()));
    return std::nullopt;
  }
  for (const auto& [key, item] : field->items()) {
    if (item.is_string()) continue;
    errors_->push_back(no_string(item, path_of(name) + "/" + pointer_token(key)));
    return std::nullopt;
  }
  return field->get<std::map<std::string, std::string>>();
}

std::optional<Decoder> Decoder::object(const std::string& name) {
  const auto* field = value(name);
  if (field == nullptr) return std::nullopt;
  return Decoder(*field, *errors_, path_of(name));
}

std::vector<Decoder> Decoder::objects(const std::string& name) {
  const auto* field = value(name);
  std::vector<Decoder> result;
  if (field == nullptr) return result;
  if (!field->is_array()) {
    mistake(name, fmt::format("expected a list, found {}", field->type_name()));
    return result;
  }
  for (std::size_t i = 0; i < field->size(); ++i)
    result.emplace_back((*field)[i], *errors_, fmt::format("{}/{}", path_of(name), i));
  return result;
}

void Decoder::finish() {
  if (!value_->is_object()) return;
  for (const auto& [name, unused] : value_->items()) {
    if (known_.contains(name)) continue;
    const auto meant = nearest(name, known_);
    mistake(name, fmt::format("unknown field '{}'", name),
            meant.empty() ? "" : fmt::format("did you mean '{}'?", meant));
  }
}

Error join_mistakes(const std::vector<Error>& mistakes, std::string_view what) {
  if (mistakes.size() == 1) {
    auto only = mistakes.front();
    only.message = fmt::format("{}: {}", what, only.message);
    return only;
  }
  Error joined{ErrorKind::kInvalid, fmt::format("{} has {} mistakes", what, mistakes.size()), "", ""};
  const auto told = std::min(mistakes.size(), kMostMistakes);
  for (std::size_t i = 0; i < told; ++i) joined.message += "\n  " + to_string(mistakes[i]);
  if (told < mistakes.size()) joined.message += fmt::format("\n  … and {} more", mistakes.size() - told);
  return joined;
}

std::string nearest(std::string_view word, const std::set<std::string>& candidates) {
  std::string best;
  // Of two that are equally near, the one of the same length: "rum" was meant to be "run" rather than "rm".
  std::pair<std::size_t, std::size_t> best_distance = {1 + word.size() / 3, word.size() + 1};
  for (const auto& candidate : candidates) {
    const auto longer = std::max(candidate.size(), word.size()) - std::min(candidate.size(), word.size());
    if (longer > best_distance.first) continue;  // each letter that is missing costs one
    const std::pair distance(edit_distance(word, candidate), longer);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace drover
