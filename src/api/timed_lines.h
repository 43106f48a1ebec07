#pragma once

// Puts the time in front of each line of one output: "2026-11-26T10:00:00.123Z loss 0.2". A line is as old as
// its first byte. "-" stands where the time is not known. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "engine/outputs.h"

namespace drover::api {

class TimedLines {
 public:
  enum class Begin { kLine, kMiddle };
  explicit TimedLines(Begin begin = Begin::kLine) : open_(begin == Begin::kMiddle) {}

  /// Any cut of the output, of which all came at that time.
  std::string take(std::string_view bytes, std::optional<engine::OutputTime> at);

 private:
  bool open_;  ///< the last line is not complete
};

}  // namespace drover::api
