#pragma once

// The flags of batch work: arrays, when a task starts, and what becomes of it when it fails.

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::cli {

/// As they were written; empty: not given.
struct BatchFlags {
  std::string array, begin, retries;
  std::vector<std::string> after;
  bool requeue = false;
  bool no_requeue = false;
};

void add_batch_flags(CLI::App& command, BatchFlags& flags);

/// Adds to the body of a request for a task what they say.
Status add_batch(const BatchFlags& flags, nlohmann::json& body);

}  // namespace drover::cli
