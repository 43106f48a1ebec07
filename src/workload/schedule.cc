#include "workload/schedule.h"

#include <algorithm>

#include "workload/stored.h"

namespace drover::workload {

bool is_schedule_name(std::string_view text) {
  constexpr std::size_t kLongest = 255;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kLongest && std::all_of(text.begin(), text.end(), fits);
}

nlohmann::json encode(const Schedule& schedule) {
  return schedule;
}

Result<Schedule> decode_schedule(const nlohmann::json& value) {
  return from_stored<Schedule>(value, "A stored schedule");
}

}  // namespace drover::workload
