#pragma once

// What libyaml finds in a text, event by event, with the places: for those who make values of it (yaml.h,
// definitions of the command line). Whoever includes this has <yaml.h>.

#include <yaml.h>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace drover {

class YamlParser {
 public:
  /// `text` outlives it.
  explicit YamlParser(std::string_view text, yaml_encoding_t encoding = YAML_ANY_ENCODING) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_encoding(&parser_, encoding);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlParser() { yaml_parser_delete(&parser_); }
  YamlParser(const YamlParser&) = delete;
  YamlParser& operator=(const YamlParser&) = delete;

  /// Once an event is not valid: what is wrong, and where.
  std::string problem(const char* otherwise) const {
    return parser_.problem == nullptr ? otherwise : parser_.problem;
  }
  const yaml_mark_t& place() const { return parser_.problem_mark; }
  /// It counts bytes then, not lines.
  bool stopped_at_a_byte() const { return parser_.error == YAML_READER_ERROR; }

 private:
  friend class YamlEvent;
  yaml_parser_t parser_{};
};

/// The next of a parser. Lines and columns are counted from 0.
class YamlEvent {
 public:
  explicit YamlEvent(YamlParser& parser) : valid_(yaml_parser_parse(&parser.parser_, &event_) != 0) {}
  ~YamlEvent() {
    if (valid_) yaml_event_delete(&event_);
  }
  YamlEvent(const YamlEvent&) = delete;
  YamlEvent& operator=(const YamlEvent&) = delete;

  bool valid() const { return valid_; }
  yaml_event_type_t type() const { return event_.type; }
  const yaml_event_t& details() const { return event_; }
  const yaml_mark_t& place() const { return event_.start_mark; }
  /// Of a scalar.
  bool plain() const { return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }
  std::string text() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }

 private:
  yaml_event_t event_{};
  bool valid_;
};

/// Whether all of the text is a number, in `base`.
template <typename Number, typename... Base>
bool read_yaml_number(std::string_view text, Number& number, Base... base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace drover
