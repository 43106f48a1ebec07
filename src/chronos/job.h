#pragma once

// A Chronos job as JSON, read into a schedule (wire: JobDeserializer of Chronos 3). Reading is as lenient as
// Chronos is: numbers and truth values may be text, what is unknown is ignored, and 0 means the default.
// Pure.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/schedule.h"

namespace drover::chronos {

struct JobRequest {
  /// Its task has no user and no owner yet. Its definition has the fields that say nothing about times and
  /// parents, each with its value.
  workload::Schedule schedule;
  std::string run_as_user;  ///< "" when none is named
};

/// What a machine is, by name; "hostname" is one.
using Attributes = std::map<std::string, std::vector<std::string>>;

enum class JobKind { kScheduled, kDependent };

/// Each mistake on its own, with its path. `machine` and `now` as for decode_job.
tl::expected<JobRequest, std::vector<Error>> read_job(std::string_view body, JobKind kind,
                                                      const Attributes* machine, TimePoint now);

/// All mistakes at once. LIKE and UNLIKE are judged by `machine`; null when it is not known, then they are
/// only read. `now` is when a schedule without a start begins.
Result<JobRequest> decode_job(std::string_view body, JobKind kind, const Attributes* machine, TimePoint now);

}  // namespace drover::chronos
