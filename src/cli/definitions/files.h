#pragma once

// Definitions out of files, for the commands that take them.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/definitions/definition.h"

namespace drover::cli {

/// "-" is standard input.
Result<std::string> read_definition_text(const std::string& file);

/// Reads every file; "-" is standard input. What cannot be opened is an Error, what is wrong in a file a
/// finding, and where `strict`, what is doubtful too.
Result<Definitions> read_definition_files(const std::vector<std::string>& files, bool strict = false);

/// Prints them for people to standard error.
void report_warnings(const std::vector<Finding>& warnings);

/// Prints the findings for people to standard error; returns the exit status
/// of invalid input.
int report_findings(const std::vector<Finding>& findings);

}  // namespace drover::cli
