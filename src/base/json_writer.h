#pragma once

// Writes JSON straight into a text, for lists so long that building a tree of values first would take most of
// the time. The result is compact, and the same bytes as nlohmann's dump() gives when keys are written in
// their order. Who writes sees to it that what begins also ends and that keys stand in objects only.

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace drover {

/// Adds the text in quotes and escaped; what is no UTF-8 becomes U+FFFD.
void append_json_text(std::string& out, std::string_view text);

class JsonWriter {
 public:
  /// `out` outlives it; what is written comes behind what is in it.
  explicit JsonWriter(std::string& out) : out_(out), begin_(out.size()) {}

  void begin_object() { open('{'); }
  void end_object() { out_ += '}'; }
  void begin_array() { open('['); }
  void end_array() { out_ += ']'; }
  void key(std::string_view name) {
    value(name);
    out_ += ':';
  }
  /// A name that stands in the code, where nothing needs to be escaped: added at once.
  template <std::size_t size>
  void key(const char (&name)[size]) {
    std::array<char, size + 3> text;
    auto* end = text.data();
    if (needs_comma()) *end++ = ',';
    *end++ = '"';
    end = std::copy_n(static_cast<const char*>(name), size - 1, end);
    *end++ = '"';
    *end++ = ':';
    out_.append(text.data(), static_cast<std::size_t>(end - text.data()));
  }

  void value(std::string_view text) {
    separate();
    append_json_text(out_, text);
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(std::same_as<bool> auto truth) { raw(truth ? "true" : "false"); }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void value(Number number) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    raw({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  void value(double number);
  template <typename Item>
  void value(const std::vector<Item>& items) {
    begin_array();
    for (const auto& item : items) value(item);
    end_array();
  }
  void value(const std::map<std::string, std::string>& fields) {
    begin_object();
    for (const auto& [name, text] : fields) field(name, text);
    end_object();
  }
  void null() { raw("null"); }
  /// JSON that is text already; in an object also fields with their names, at least one.
  void raw(std::string_view json) {
    separate();
    out_ += json;
  }

  template <typename Name, typename Value>
  void field(const Name& name, const Value& its_value) {
    key(name);
    value(its_value);
  }
  template <typename Name>
  void field_raw(const Name& name, std::string_view json) {
    key(name);
    raw(json);
  }
  /// All fields of an object, which has few.
  void fields(const nlohmann::json& object);

 private:
  /// A string ends with its quote, so these can only be what they look like.
  bool needs_comma() const {
    if (out_.size() == begin_) return false;
    const char last = out_.back();
    return last != '{' && last != '[' && last != ':';
  }
  void separate() {
    if (needs_comma()) out_ += ',';
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
  }

  std::string& out_;
  std::size_t begin_;
};

}  // namespace drover
