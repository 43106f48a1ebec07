#pragma once

// What the daemon is loaded with: apps and jobs as people write them, in forty-odd lines of fields each.

#include <string>

namespace drover::bench {

/// "/team-03/app-0107"
std::string app_id(int number);
/// A Marathon app with a health check, as JSON text.
std::string app_definition(int number, int instances);
/// Those from `first` to the one before `behind`, as PUT /v2/apps takes them.
std::string app_definitions(int first, int behind, int instances);
/// A Chronos job that is not due in our time, as JSON text.
std::string job_definition(int number);

}  // namespace drover::bench
