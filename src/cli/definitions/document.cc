#include "cli/definitions/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/decode.h"
#include "base/shorten.h"
#include "base/yaml_events.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kStringTag = "tag:yaml.org,2002:str";

Place place_of(const yaml_mark_t& mark) {
  return {mark.line + 1, mark.column + 1};
}

std::string words(const yaml_char_t* text) {
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

std::string anchor_of(const YamlEvent& event) {
  const auto& data = event.details().data;
  switch (event.type()) {
    case YAML_ALIAS_EVENT:
      return words(data.alias.anchor);
    case YAML_SCALAR_EVENT:
      return words(data.scalar.anchor);
    case YAML_SEQUENCE_START_EVENT:
      return words(data.sequence_start.anchor);
    default:
      return words(data.mapping_start.anchor);
  }
}

std::string tag_of(const YamlEvent& event) {
  const auto& data = event.details().data;
  switch (event.type()) {
    case YAML_SCALAR_EVENT:
      return words(data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
      return words(data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
      return words(data.mapping_start.tag);
    default:
      return "";
  }
}

/// YAML 1.2's core schema, but for numbers that begin with a zero: readers differ in what they are, so they
/// stay text.
json plain_scalar(const std::string& text) {
  for (const auto* word : {"", "~", "null", "Null", "NULL"})
    if (text == word) return nullptr;
  for (const auto* word : {"true", "True", "TRUE"})
    if (text == word) return true;
  for (const auto* word : {"false", "False", "FALSE"})
    if (text == word) return false;
  std::int64_t whole = 0;
  if (text.starts_with("0x") && read_yaml_number(std::string_view(text).substr(2), whole, 16)) return whole;
  auto digits = std::string_view(text).substr(text[0] == '-' || text[0] == '+' ? 1 : 0);
  if (digits.size() > 1 && digits[0] == '0' && digits[1] != '.' && digits[1] != 'e') return text;
  if (digits.empty() || (digits[0] != '.' && (digits[0] < '0' || digits[0] > '9'))) return text;
  const auto number = std::string_view(text).substr(text[0] == '+' ? 1 : 0);
  if (read_yaml_number(number, whole)) return whole;
  double real = 0;
  if (read_yaml_number(number, real) && std::isfinite(real)) return real;
  return text;
}

std::size_t height(const json& value) {
  if (!value.is_structured()) return 0;
  std::size_t highest = 0;
  for (const auto& child : value) highest = std::max(highest, height(child));
  return highest + 1;
}

/// Stops at the first mistake.
class DefinitionReader {
 public:
  explicit DefinitionReader(std::string_view text) : parser_(text, YAML_UTF8_ENCODING) {}

  tl::expected<std::vector<Document>, Mistake> read() {
    std::vector<Document> documents;
    for (;;) {
      const YamlEvent event(parser_);
      if (!event.valid()) return tl::unexpected(syntax_error());
      if (event.type() == YAML_STREAM_END_EVENT) return documents;
      if (event.type() == YAML_STREAM_START_EVENT || event.type() == YAML_DOCUMENT_START_EVENT) continue;
      if (event.type() == YAML_DOCUMENT_END_EVENT) {
        if (!document_.value.is_null()) documents.push_back(std::move(document_));
        document_ = {};
        anchors_.clear();
        continue;
      }
      json value;
      if (!node(event, "", 0, value)) return tl::unexpected(std::move(*mistake_));
      document_.value = std::move(value);
    }
  }

 private:
  struct Anchor {
    json value;
    std::size_t nodes = 0;
    std::size_t height = 0;
  };

  bool node(const YamlEvent& event, const std::string& path, std::size_t depth, json& value) {
    document_.places.emplace(path, place_of(event.place()));
    if (depth > kMostJsonLevels)
      return refuse(event, path, fmt::format("it is nested deeper than {} levels", kMostJsonLevels));
    if (++nodes_ > kMostDefinitionNodes) return too_many(event, path);
    if (event.type() == YAML_ALIAS_EVENT) return alias(event, path, depth, value);
    const auto tag = tag_of(event);
    if (!tag.empty() && tag != "!" && tag != kStringTag)
      return refuse(event, path, fmt::format("the tag '{}' is not known", tag), "leave it out");
    const auto before = nodes_ - 1;
    if (event.type() == YAML_SCALAR_EVENT)
      value = event.plain() && tag.empty() ? plain_scalar(event.text()) : json(event.text());
    else if (!(event.type() == YAML_SEQUENCE_START_EVENT ? sequence(path, depth, value)
                                                         : mapping(path, depth, value)))
      return false;
    if (const auto name = anchor_of(event); !name.empty())
      anchors_[name] = {value, nodes_ - before, height(value)};
    return true;
  }

  bool alias(const YamlEvent& event, const std::string& path, std::size_t depth, json& value) {
    const auto found = anchors_.find(anchor_of(event));
    if (found == anchors_.end())
      return refuse(event, path, fmt::format("there is no anchor '&{}' before it", anchor_of(event)));
    nodes_ += found->second.nodes;
    if (nodes_ > kMostDefinitionNodes) return too_many(event, path);
    if (depth + found->second.height > kMostJsonLevels)
      return refuse(event, path, fmt::format("it is nested deeper than {} levels", kMostJsonLevels));
    value = found->second.value;
    return true;
  }

  bool sequence(const std::string& path, std::size_t depth, json& list) {
    list = json::array();
    for (;;) {
      const YamlEvent item(parser_);
      if (!item.valid()) return syntax_trouble();
      if (item.type() == YAML_SEQUENCE_END_EVENT) return true;
      json value;
      if (!node(item, fmt::format("{}/{}", path, list.size()), depth + 1, value)) return false;
      list.push_back(std::move(value));
    }
  }

  bool mapping(const std::string& path, std::size_t depth, json& object) {
    object = json::object();
    for (;;) {
      const YamlEvent key(parser_);
      if (!key.valid()) return syntax_trouble();
      if (key.type() == YAML_MAPPING_END_EVENT) return true;
      if (key.type() != YAML_SCALAR_EVENT) return refuse(key, path, "the name of a field is plain text");
      const auto name = key.text();
      const auto inner = path + "/" + pointer_token(name);
      if (key.plain() && name == "<<")
        return refuse(key, path, "merge keys ('<<') are not known", "write the fields out");
      if (object.contains(name))
        return refuse(key, inner, fmt::format("the field '{}' stands here twice", shortened(name)),
                      "remove one of them");
      document_.names.emplace(inner, place_of(key.place()));
      const YamlEvent item(parser_);
      if (!item.valid()) return syntax_trouble();
      json value;
      if (!node(item, inner, depth + 1, value)) return false;
      object.emplace(name, std::move(value));
    }
  }

  bool refuse(const YamlEvent& event, const std::string& path, std::string message, std::string hint = "") {
    mistake_ = {place_of(event.place()), shortened(path), std::move(message), std::move(hint)};
    return false;
  }
  bool too_many(const YamlEvent& event, const std::string& path) {
    return refuse(event, path, fmt::format("the file has more than {} values in it", kMostDefinitionNodes),
                  "aliases count as all that they stand for");
  }
  bool syntax_trouble() {
    mistake_ = syntax_error();
    return false;
  }
  Mistake syntax_error() const {
    const auto place = parser_.stopped_at_a_byte() ? Place() : place_of(parser_.place());
    const std::string problem = parser_.problem("it cannot be read");
    // So libyaml speaks of '*/10 * * * *' and '@daily' without quotes.
    const bool needs_quotes = problem.ends_with("cannot start any token") ||
                              problem.ends_with("expected alphabetic or numeric character");
    return {place, "", fmt::format("this is neither YAML nor JSON: {}", problem),
            needs_quotes ? "what begins with '*', '&', '@' or '%' stands in quotes" : ""};
  }

  YamlParser parser_;
  Document document_;
  std::map<std::string, Anchor> anchors_;
  std::size_t nodes_ = 0;  ///< of all documents
  std::optional<Mistake> mistake_;
};

bool looks_like_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

/// The place that the message of a syntax error ends with.
Place place_in(const std::string& message) {
  Place place;
  const auto at = message.rfind("line ");
  if (at != std::string::npos &&
      std::sscanf(message.c_str() + at, "line %zu, column %zu", &place.line, &place.column) != 2)
    return {};
  return place;
}

}  // namespace

std::string pointer_of(std::string_view path) {
  std::string pointer;
  for (const char c : path) {
    if (c == '(')
      pointer += '/';
    else if (c != ')')
      pointer += c;
  }
  if (!pointer.empty() && pointer.back() == '/') pointer.pop_back();
  return pointer;
}

Place Document::place_of_name(std::string_view path) const {
  const auto found = names.find(pointer_of(path));
  return found == names.end() ? place_of(path) : found->second;
}

Place Document::place_of(std::string_view path) const {
  auto pointer = pointer_of(path);
  for (;;) {
    if (const auto found = places.find(pointer); found != places.end()) return found->second;
    const auto slash = pointer.rfind('/');
    if (slash == std::string::npos) return {};
    pointer.resize(slash);
  }
}

tl::expected<std::vector<Document>, Mistake> parse_documents(std::string_view text, bool only_json) {
  if (text.size() > kMaxDefinitionBytes)
    return tl::unexpected(
        Mistake{{}, "", fmt::format("it is larger than {} MiB", kMaxDefinitionBytes >> 20), ""});
  auto read = DefinitionReader(text).read();
  if (!only_json && !looks_like_json(text)) return read;
  // JSON is read as JSON; the places are those that YAML finds in it.
  auto value = parse_json(text, "This");
  if (value) {
    Document document{std::move(*value), {}, {}};
    if (read && read->size() == 1) {
      document.places = std::move(read->front().places);
      document.names = std::move(read->front().names);
    }
    if (document.value.is_null()) return std::vector<Document>();
    std::vector<Document> documents;
    documents.push_back(std::move(document));
    return documents;
  }
  // What both refuse, the one knows better that says more than that it cannot be read.
  if (!only_json && read) return read;
  if (!read && !read.error().path.empty()) return read;
  const auto& error = value.error();
  return tl::unexpected(Mistake{place_in(error.message), error.path, error.message, error.hint});
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (std::size_t at = 0, line = 1; at <= text.size() && number > 0; ++line) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (line == number) {
      auto found = text.substr(at, end - at);
      if (found.ends_with('\r')) found.remove_suffix(1);
      return found;
    }
    at = end + 1;
  }
  return {};
}

std::string point_at(std::string_view line, Place place) {
  constexpr std::size_t kLongest = 120;
  if (place.line == 0 || place.column == 0 || line.empty()) return "";
  // In characters: where each one begins.
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < line.size(); ++i)
    if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80) begins.push_back(i);
  if (begins.empty()) return "";
  const auto column = std::min(place.column - 1, begins.size());
  const auto first = column < kLongest ? 0 : column - kLongest / 2;
  const auto last = std::min(begins.size(), first + kLongest);
  const auto end = last < begins.size() ? begins[last] : line.size();
  std::string shown(line.substr(begins[first], end - begins[first]));
  std::replace_if(shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return fmt::format("  {}\n  {}^\n", shown, std::string(column - first, ' '));
}

}  // namespace drover::cli
