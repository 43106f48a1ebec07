#include "base/yaml_writer.h"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/json_text.h"
#include "base/text.h"

namespace drover {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestLine = 80;  ///< of what is put on one
/// Fields that say what a thing is, in the order in which people look for them.
constexpr std::array<std::string_view, 8> kFirst = {"kind", "id",        "name", "queue",
                                                    "user", "namespace", "cmd",  "command"};

/// Whether every reader of YAML, also of 1.1, takes it for text without quotes. What else libyaml knows to be
/// quoted, it quotes itself.
bool is_plainly_text(const std::string& text) {
  static const std::set<std::string> words = {"y",  "n",   "yes",  "no",  "true", "false",
                                              "on", "off", "null", "nan", "inf"};
  const auto first = static_cast<unsigned char>(text.empty() ? '0' : text.front());
  const bool letter =
      (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '/' || first == '_';
  return letter && text.find('\n') == std::string::npos && !words.contains(lower(text));
}

bool is_short(const json& value) {
  return std::ranges::none_of(value, [](const json& child) { return child.is_structured(); }) &&
         to_text(value).size() <= kLongestLine;
}

class YamlWriter {
 public:
  YamlWriter() {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, -1);
    yaml_emitter_set_output(&emitter_, append, &text_);
    yaml_event_t event;
    yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    emit(event);
  }
  ~YamlWriter() { yaml_emitter_delete(&emitter_); }
  YamlWriter(const YamlWriter&) = delete;
  YamlWriter& operator=(const YamlWriter&) = delete;

  void document(const json& value) {
    yaml_event_t event;
    yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr,
                                         std::exchange(begun_, true) ? 0 : 1);
    emit(event);
    value.is_object() ? object(value, false) : node(value, false);  // however short
    yaml_document_end_event_initialize(&event, 1);
    emit(event);
  }

  std::string finish() {
    yaml_event_t event;
    yaml_stream_end_event_initialize(&event);
    emit(event);
    return std::move(text_);
  }

 private:
  static int append(void* text, unsigned char* bytes, std::size_t size) {
    static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }

  void emit(yaml_event_t& event) { yaml_emitter_emit(&emitter_, &event); }

  void node(const json& value, bool within_line) {
    const bool line = within_line || is_short(value);
    if (value.is_object())
      object(value, line);
    else if (value.is_array())
      array(value, line);
    else if (value.is_string())
      string(value.get_ref<const std::string&>());
    else
      scalar(to_text(value), YAML_PLAIN_SCALAR_STYLE);
  }

  void object(const json& value, bool line) {
    yaml_event_t event;
    yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1,
                                        line ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
    emit(event);
    const auto field = [&](const std::string& name, const json& inner) {
      string(name);
      node(inner, line);
    };
    for (const auto first : kFirst)
      if (const auto found = value.find(first); found != value.end()) field(found.key(), *found);
    for (const auto& [name, inner] : value.items())
      if (std::ranges::find(kFirst, name) == kFirst.end()) field(name, inner);
    yaml_mapping_end_event_initialize(&event);
    emit(event);
  }

  void array(const json& value, bool line) {
    yaml_event_t event;
    yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1,
                                         line ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
    emit(event);
    for (const auto& inner : value) node(inner, line);
    yaml_sequence_end_event_initialize(&event);
    emit(event);
  }

  void string(const std::string& text) {
    const bool lines = text.find('\n') != std::string::npos;
    scalar(text, is_plainly_text(text) ? YAML_PLAIN_SCALAR_STYLE
                 : lines               ? YAML_LITERAL_SCALAR_STYLE
                                       : YAML_SINGLE_QUOTED_SCALAR_STYLE);
  }

  /// libyaml takes another style where it has to.
  void scalar(const std::string& text, yaml_scalar_style_t style) {
    yaml_event_t event;
    yaml_scalar_event_initialize(&event, nullptr, nullptr, reinterpret_cast<const yaml_char_t*>(text.data()),
                                 static_cast<int>(text.size()), 1, 1, style);
    emit(event);
  }

  yaml_emitter_t emitter_{};
  std::string text_;
  bool begun_ = false;
};

}  // namespace

std::string to_yaml(const std::vector<json>& documents) {
  YamlWriter writer;
  for (const auto& document : documents) writer.document(document);
  return writer.finish();
}

}  // namespace drover
