#include "cli/list_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/shorten.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

using nlohmann::json;

Failure no_format(std::string_view text, const std::string& why) {
  return fail(ErrorKind::kInvalid, fmt::format("--format: '{}' {}", shortened(std::string(text), 80), why),
              "write columns, as id,state, or a line, as '{id} is {state}'");
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string with_control_characters(std::string_view text) {
  std::string done;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == 't' || next == 'n' || next == '\\') ++i;
    done += next == 't' ? '\t' : next == 'n' ? '\n' : text[i];
  }
  return done;
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    names.push_back(in_small_letters(trimmed(text.substr(begin, end - begin))));
    begin = end + 1;
  }
  return names;
}

std::string value_at(const json& object, const std::string& path) {
  json found = object;
  for (std::size_t begin = 0; begin <= path.size() && !found.is_null();) {
    const auto end = std::min(path.find('.', begin), path.size());
    found = found.is_object() ? found.value(path.substr(begin, end - begin), json()) : json();
    begin = end + 1;
  }
  if (found.is_null()) return "";
  return printable(found.is_string() ? found.get<std::string>() : to_text(found));
}

}  // namespace

Result<ListFormat> ListFormat::parse(std::string_view text) {
  constexpr std::string_view kTable = "table ";
  ListFormat format;
  if (text.find('{') == text.npos) {
    format.names_ = split_names(text);
    return format;
  }
  auto rest = text.starts_with(kTable) ? text.substr(kTable.size()) : text;
  for (auto open = rest.find('{'); open != rest.npos; open = rest.find('{')) {
    const std::string_view closing = rest.substr(open).starts_with("{{") ? "}}" : "}";
    const auto close = rest.find(closing, open);
    if (close == rest.npos) return no_format(text, fmt::format("has a '{{' without its '{}'", closing));
    auto name = trimmed(rest.substr(open + closing.size(), close - open - closing.size()));
    if (name.starts_with('.')) name.remove_prefix(1);
    if (name.empty() || name.find_first_of(" {(|") != name.npos)
      return no_format(text, fmt::format("has '{}' where a name should be", name));
    format.between_.push_back(with_control_characters(rest.substr(0, open)));
    format.names_.push_back(in_small_letters(name));
    rest.remove_prefix(close + closing.size());
  }
  format.between_.push_back(with_control_characters(rest));
  if (text.starts_with(kTable)) format.between_.clear();
  return format;
}

std::string ListFormat::line(const std::vector<std::string>& values) const {
  if (!is_text()) return fmt::format("{}\n", fmt::join(values, "\t"));
  auto text = between_.front();
  for (std::size_t i = 0; i < values.size(); ++i) text += values[i] + between_[i + 1];
  return text + "\n";
}

std::string ListFormat::line_of(const json& object) const {
  std::vector<std::string> values;
  for (const auto& path : names_) values.push_back(value_at(object, path));
  return line(values);
}

}  // namespace drover::cli
