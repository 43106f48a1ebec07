#include "base/json_writer.h"

#include <cmath>
#include <cstdint>
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

/// As whole thousandths, when it is so many and no more digits than a double keeps; 0: no. Of none that is 0.
std::int64_t thousandths_of(double number) {
  constexpr double kMost = 1e12;
  if (!(std::abs(number) < kMost)) return 0;
  const double thousandths = std::nearbyint(number * 1000);
  return thousandths / 1000 == number ? static_cast<std::int64_t>(thousandths) : 0;
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
  // Most of what is listed has none of something.
  if (number == 0) return raw(std::signbit(number) ? "-0.0" : "0.0");
  // Amounts and times are of such numbers, thousands in a list.
  const auto thousandths = thousandths_of(number);
  if (thousandths == 0) return raw(nlohmann::json(number).dump());
  const auto digits = static_cast<unsigned>(std::abs(thousandths) % 1000);
  const std::array<char, 4> decimals{'.', static_cast<char>('0' + digits / 100),
                                     static_cast<char>('0' + digits / 10 % 10),
                                     static_cast<char>('0' + digits % 10)};
  if (number < 0 && thousandths > -1000)
    raw("-0");  // a whole number has no such
  else
    value(thousandths / 1000);
  out_.append(decimals.data(), digits % 10 != 0 ? 4 : digits % 100 != 0 ? 3 : 2);
}

void JsonWriter::fields(const nlohmann::json& object) {
  const auto text = to_text(object);
  if (text.size() > 2) raw(std::string_view(text).substr(1, text.size() - 2));
}

}  // namespace drover
