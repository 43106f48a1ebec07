#include "base/json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace drover {

void append_json_text(std::string& out, std::string_view text) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
  };
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    using nlohmann::json;
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

}  // namespace drover
