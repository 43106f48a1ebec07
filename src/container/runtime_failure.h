#pragma once

// Why an OCI runtime could not start a container, from what it left behind. Pure; thread safe.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::container {

/// The runtime's own last word: the last error in its log (one JSON object a line), or else the last line
/// that it wrote to standard error, or "".
std::string last_word(std::string_view log, std::string_view standard_error);

/// In clear words: a command that is not there or cannot be run is the task's mistake (kNotFound,
/// kPermissionDenied), anything else the runtime's (kUnavailable). `wait_status`: how the runtime ended,
/// which is told when it said nothing.
Error explain_runtime_failure(const std::string& runtime, std::string_view word,
                              std::optional<int> wait_status = std::nullopt);

/// There is no such program in the container. The hint is another for what only a shell understands.
Error missing_command(std::string_view command);

/// As shells and Docker spell it: 127 no such command, 126 it cannot be run, 125 anything else.
int exit_status_of(const Error& start_failure);

}  // namespace drover::container
