#pragma once

// A submission with each of its mistakes on its own, for who shows where they stand. Pure.

#include <span>

#include "workload/task.h"

namespace drover::workload {

/// As decode_submission().
tl::expected<Submission, std::vector<Error>> read_submission(const nlohmann::json& body);

/// What it asks for: one task, what all of an array are like, or the members of a gang by rank.
template <typename S>
auto requests_in(S& submission) {
  if (auto* gang = std::get_if<GangRequest>(&submission)) return std::span(gang->members);
  if (auto* array = std::get_if<ArrayRequest>(&submission)) return std::span(&array->task, 1);
  return std::span(&std::get<TaskRequest>(submission), 1);
}

}  // namespace drover::workload
