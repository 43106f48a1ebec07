#include "metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace drover::metrics {
namespace {

std::string valid_utf8(std::string_view text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return std::string(text);
  using nlohmann::json;
  return json::parse(to_text(json(text)));
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

void append_labels(std::string& out, const Labels& labels) {
  char before = '{';
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;
    out += before;
    before = ',';
    out += name;
    out += "=\"";
    append_escaped(out, value);
    out += '"';
  }
  if (before == ',') out += '}';
}

void append_value(std::string& out, double value) {
  if (std::isnan(value))
    out += "NaN";
  else if (std::isinf(value))
    out += value > 0 ? "+Inf" : "-Inf";
  else
    fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace

std::string_view to_string(Type type) {
  switch (type) {
    case Type::kCounter:
      return "counter";
    case Type::kHistogram:
      return "histogram";
    case Type::kGauge:
      break;
  }
  return "gauge";
}

std::string write(const std::vector<Family>& families) {
  std::string out;
  for (const auto& [metric, samples] : families) {
    if (samples.empty()) continue;
    fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n", metric->name, metric->help,
                   to_string(metric->type));
    for (const auto& [labels, value, suffix] : samples) {
      out += metric->name;
      out += suffix;
      append_labels(out, labels);
      out += ' ';
      append_value(out, value);
      out += '\n';
    }
  }
  return out;
}

}  // namespace drover::metrics
