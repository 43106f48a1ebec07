#include "cli/definitions/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/decode.h"
#include "base/shorten.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/schemas.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kNoWord = "error.unknown.enum.literal";
constexpr std::string_view kNoText = "error.expected.jsstring";
/// How the mistakes of names begin, or what is in them, that show a regular expression.
constexpr std::array<std::string_view, 2> kExpressions = {"must fully match regular expression",
                                                          "Allowed names: '("};

/// Marathon's codes of wrong types, in words.
std::string in_words(const std::string& text) {
  static const std::map<std::string, std::string> words = {
      {"error.path.missing", "it is missing"},
      {"error.expected.jsstring", "expected text"},
      {"error.expected.jsnumber", "expected a number"},
      {"error.expected.int", "expected a whole number"},
      {"error.expected.jsboolean", "expected true or false"},
      {"error.expected.jsobject", "expected an object"},
      {"error.expected.jsarray", "expected a list"},
      {"error.unknown.enum.literal", "it is none of the words that can stand here"},
      {"error.min", "it is too small"},
      {"error.max", "it is too large"},
      {"error.minLength", "it is too short"},
      {"error.maxLength", "it is too long"}};
  const auto found = words.find(text);
  return found == words.end() ? text : found->second;
}

/// Null when there is nothing. Names in the pointer are as they are.
const json* value_at(const json& value, std::string_view pointer) {
  const auto* found = &value;
  while (!pointer.empty() && found != nullptr) {
    pointer.remove_prefix(1);
    const auto name = std::string(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(name.size());
    if (found->is_object()) {
      const auto field = found->find(name);
      found = field == found->end() ? nullptr : &*field;
    } else if (found->is_array() && !name.empty() && name.size() < 9 &&
               name.find_first_not_of("0123456789") == std::string::npos) {
      const auto index = static_cast<std::size_t>(std::stoul(name));
      found = index < found->size() ? &(*found)[index] : nullptr;
    } else {
      found = nullptr;
    }
  }
  return found;
}

std::string words_hint(const std::string& given, const std::vector<std::string>& words) {
  const auto all = fmt::format("it is one of {}", fmt::join(words, ", "));
  // In capitals, since that is how Marathon has them.
  auto loud = given;
  std::ranges::transform(loud, loud.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::set<std::string> known(words.begin(), words.end());
  auto meant = nearest(given, known);
  if (meant.empty()) meant = nearest(loud, known);
  return meant.empty() ? all : fmt::format("did you mean '{}'? {}", meant, all);
}

/// What is to be written where a number of this unit stands.
std::string unit_hint(const std::string& text, const std::string& unit) {
  std::optional<double> count;
  if (unit == "MiB") {
    if (const auto bytes = parse_bytes(text)) count = static_cast<double>(*bytes) / (1 << 20);
  } else if (unit == "seconds") {
    if (const auto time = parse_duration(text)) count = static_cast<double>(time->count()) / 1000;
  }
  if (!count) return fmt::format("it is a number of {}", unit);
  if (text.find_first_not_of("0123456789.") == std::string::npos)
    return fmt::format("write {} without quotes, it is in {}", text, unit);
  return fmt::format("write {}, it is in {}", *count, unit);
}

void explain_name(Mistake& mistake, const std::string& given, const std::string& rule) {
  mistake.message = fmt::format("'{}' cannot stand here", shortened(given));
  mistake.hint = rule;
  const auto small = lower(given);
  if (small != given && rule.find("lower-case") != std::string::npos)
    mistake.hint += fmt::format("; write it in lower case: {}", shortened(small));
}

}  // namespace

void put_in_words(Mistake& mistake, std::string_view schema, std::string_view pointer, const json& value) {
  const auto field = schemas::field_at(schema, pointer).value_or(schemas::Field());
  const auto* found = value_at(value, pointer);
  const bool is_text = found != nullptr && found->is_string();
  const auto text = is_text ? found->get<std::string>() : "";
  const auto shows = [&](std::string_view words) { return mistake.message.find(words) != std::string::npos; };
  if (mistake.message == kNoWord && is_text && !field.words.empty()) {
    mistake.message = fmt::format("'{}' is none of the words that can stand here", shortened(text));
    mistake.hint = words_hint(text, field.words);
  } else if (is_text && !field.pattern_words.empty() && std::ranges::any_of(kExpressions, shows)) {
    explain_name(mistake, text, field.pattern_words);
  } else if (mistake.message == kNoText && found != nullptr && (found->is_number() || found->is_boolean())) {
    mistake.hint = fmt::format("write it in quotes: \"{}\"", found->dump());
  } else if (mistake.hint.empty() && !field.unit.empty() && shows("expected")) {
    mistake.hint = unit_hint(text, field.unit);
  } else if (pointer.ends_with("/command") && is_text && shows("expected a list")) {
    mistake.hint = "write it word by word: [python3, train.py]; for a shell: [sh, -c, '…']";
  } else if (shows("is too little") && found != nullptr && found->is_number()) {
    mistake.hint +=
        fmt::format("; a number without a unit counts bytes: for so many MiB write {}MiB", found->dump());
  } else if (shows("there is nothing to run")) {
    mistake.hint = "give it a 'command', or an 'image' that has one";
  }
  mistake.message = in_words(mistake.message);
}

}  // namespace drover::cli
