#pragma once

// Measured values in the text format 0.0.4 of Prometheus. Pure.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drover::metrics {

inline constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

enum class Type { kGauge, kCounter, kHistogram };
std::string_view to_string(Type type);

/// What all values of one name have in common. Lives as long as the program.
struct Metric {
  std::string_view name;
  Type type = Type::kGauge;
  std::string_view help;
};

/// In the order in which they are written; a label without a value is left out, as if it were not there.
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  Labels labels;
  double value = 0;
  std::string_view suffix = "";  ///< to the metric's name; lives as long as the program
};

struct Family {
  const Metric* metric = nullptr;
  std::vector<Sample> samples;
};

/// One block a family, in their order; a family without samples is left out. Texts may hold any bytes: what
/// is no UTF-8 becomes U+FFFD.
std::string write(const std::vector<Family>& families);

}  // namespace drover::metrics
