#pragma once

// What lists say of a GPU, as /v1/gpus has it. The words are not printable() yet.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "cli/client.h"

namespace drover::cli {

/// /v1/gpus with what the GPUs do, as long as somebody can say; else without.
Result<nlohmann::json> gpus_in_use(const Client& client);

/// What it does now; an object without fields where nobody knows.
nlohmann::json usage_of(const nlohmann::json& gpu);
/// "ok", "unfit: …", or who has cordoned it.
std::string health_of_gpu(const nlohmann::json& gpu);
/// "39.6 GiB", and what of it is in use: "1.2 of 39.6 GiB".
std::string memory_of_gpu(const nlohmann::json& gpu);
/// Everyone who has it or a share of it, and processes that are no task's: "alice 1f3a; 2 other processes,
/// 1.5 GiB".
std::string users_of_gpu(const nlohmann::json& gpu);

}  // namespace drover::cli
