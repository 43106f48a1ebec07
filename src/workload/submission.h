#pragma once

// A submission with each of its mistakes on its own, for who shows where they stand. Pure.

#include "workload/task.h"

namespace drover::workload {

/// As decode_submission().
tl::expected<Submission, std::vector<Error>> read_submission(const nlohmann::json& body);

}  // namespace drover::workload
