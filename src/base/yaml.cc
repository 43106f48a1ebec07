#include "base/yaml.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/yaml_events.h"

namespace drover {
namespace {

using nlohmann::json;

constexpr int kMaxYamlDepth = 16;
constexpr std::size_t kMaxYamlBytes = 1 << 20;

json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true") return true;
  if (text == "false") return false;
  std::int64_t whole = 0;
  if (text.starts_with("0x") && read_yaml_number(std::string_view(text).substr(2), whole, 16)) return whole;
  if (read_yaml_number(text, whole)) return whole;
  double number = 0;
  const bool starts_as_number = text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
  if (starts_as_number && read_yaml_number(text, number)) return number;
  return text;
}

class YamlReader {
 public:
  YamlReader(std::string_view text, std::string_view what) : parser_(text), what_(what) {}

  Result<json> document() {
    json value;
    for (bool seen = false;;) {
      const YamlEvent event(parser_);
      if (!event.valid()) return syntax_error();
      switch (event.type()) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
          break;
        case YAML_STREAM_END_EVENT:
          return value;
        case YAML_DOCUMENT_START_EVENT:
          if (seen) return mistake(event, "a second document starts here", "keep one document in the file");
          seen = true;
          break;
        default: {
          DROVER_TRY(value, node(event, 0));
        }
      }
    }
  }

 private:
  Result<json> node(const YamlEvent& event, int depth) {
    if (depth > kMaxYamlDepth) return mistake(event, "too deeply nested", "");
    switch (event.type()) {
      case YAML_SCALAR_EVENT:
        return event.plain() ? plain_scalar(event.text()) : json(event.text());
      case YAML_SEQUENCE_START_EVENT:
        return sequence(depth);
      case YAML_MAPPING_START_EVENT:
        return mapping(depth);
      default:
        return mistake(event, "aliases are not supported", "write the value out");
    }
  }

  Result<json> sequence(int depth) {
    json list = json::array();
    for (;;) {
      const YamlEvent item(parser_);
      if (!item.valid()) return syntax_error();
      if (item.type() == YAML_SEQUENCE_END_EVENT) return list;
      DROVER_TRY(json value, node(item, depth + 1));
      list.push_back(std::move(value));
    }
  }

  Result<json> mapping(int depth) {
    json object = json::object();
    for (;;) {
      const YamlEvent key(parser_);
      if (!key.valid()) return syntax_error();
      if (key.type() == YAML_MAPPING_END_EVENT) return object;
      if (key.type() != YAML_SCALAR_EVENT) return mistake(key, "a key must be plain text", "");
      const std::string name = key.text();
      if (object.contains(name))
        return mistake(key, "the key '" + name + "' stands here twice", "remove one");
      const YamlEvent item(parser_);
      if (!item.valid()) return syntax_error();
      DROVER_TRY(object[name], node(item, depth + 1));
    }
  }

  Failure syntax_error() const { return at_line(parser_.place().line + 1, parser_.problem("not YAML"), ""); }
  Failure mistake(const YamlEvent& event, const std::string& message, const std::string& hint) const {
    return at_line(event.place().line + 1, message, hint);
  }
  Failure at_line(std::size_t line, const std::string& message, const std::string& hint) const {
    return fail(ErrorKind::kInvalid, what_ + ": line " + std::to_string(line) + ": " + message, hint);
  }

  YamlParser parser_;
  std::string what_;
};

}  // namespace

Result<json> parse_yaml(std::string_view text, std::string_view what) {
  return YamlReader(text, what).document();
}

Result<json> read_yaml(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return fail_errno("Failed to open '" + file.string() + "'", errno);
  std::string text(kMaxYamlBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return fail_errno("Failed to read '" + file.string() + "'", errno);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMaxYamlBytes)
    return fail(ErrorKind::kInvalid, "'" + file.string() + "' is larger than 1 MiB", "is it the right file?");
  return parse_yaml(text, "'" + file.string() + "'");
}

}  // namespace drover
