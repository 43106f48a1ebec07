#include "base/json_writer.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace drover {

namespace {

/// No way out at the first that is not: so the compiler looks at many at once.
bool is_plain_text(std::string_view text) {
  bool plain = true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    plain &= byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
  }
  return plain;
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  if (!is_plain_text(text)) {
    out += to_text(nlohmann::json(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

void JsonWriter::value(double number) {
  raw(nlohmann::json(number).dump());
}

}  // namespace drover
