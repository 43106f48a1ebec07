#pragma once

// What batch work says of when it starts, and of what becomes of it when it does not end well. Values and
// their forms; no I/O.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/decode.h"
#include "base/result.h"
#include "base/units.h"

namespace drover {
class JsonWriter;
}

namespace drover::workload {

/// How what a task waits for is to have ended.
enum class EndedHow {
  kOk,      ///< all of it with status 0
  kFailed,  ///< any of it in another way
  kAny,
};
std::string_view to_string(EndedHow how);

/// A task that starts only after another one, or a gang or an array, has ended.
struct Dependency {
  std::string job;  ///< its id; in a request whatever people call it
  EndedHow how = EndedHow::kOk;

  bool operator==(const Dependency&) const = default;
};

inline constexpr std::size_t kMostDependencies = 100;

/// "train", "train:ok", "train:failed", "train:any".
Dependency parse_dependency(std::string_view text);

/// Whether a task that did not come to its end waits again, and starts afresh.
enum class Requeue {
  kNever,      ///< not even when it is preempted
  kPreempted,  ///< as long as nothing else is said
  kLost,       ///< also when the machine, or what watched it, went down with it
};
std::string_view to_string(Requeue policy);

inline constexpr int kMostRetries = 1000;
inline constexpr std::chrono::seconds kShortestIdleTimeout{10};

/// Of the first failure; each further one waits twice as long, up to kLongestRetryDelay.
inline constexpr std::chrono::seconds kFirstRetryDelay{5};
inline constexpr std::chrono::minutes kLongestRetryDelay{5};
/// After so many failures, at least one.
std::chrono::milliseconds retry_delay(int failures);

/// A task of an array: many that were submitted at once, are alike but for their number, and go their own
/// ways.
struct ArrayMembership {
  std::string id;   ///< made by the daemon; the tasks' own ids are "<id>-<index>"
  int index = 0;    ///< as it was asked for: 0 … kMaxArrayIndex
  int size = 1;     ///< how many there are
  int at_once = 0;  ///< so many of them run at a time at most; 0: as many as there is room for

  bool operator==(const ArrayMembership&) const = default;
};

inline constexpr int kMaxArray = 4096;
inline constexpr int kMaxArrayIndex = 4'000'000;

struct ArrayIndices {
  std::vector<int> indices;  ///< ascending, no two alike, not empty
  int at_once = 0;

  bool operator==(const ArrayIndices&) const = default;
};

/// As Slurm writes it: "0-99", "1,3,7-9", "0-30:10" in steps, "0-99%10" at most ten at a time.
Result<ArrayIndices> parse_array(std::string_view text);

/// Of one task.
struct Batch {
  std::vector<Dependency> after;
  std::optional<TimePoint> begin;  ///< not before
  int retries = 0;                 ///< how often it is tried again after a failure
  Requeue requeue = Requeue::kPreempted;
  std::optional<std::chrono::milliseconds> idle_timeout;  ///< stopped when its GPUs did nothing for so long
  std::optional<ArrayMembership> array;

  bool operator==(const Batch&) const = default;
};

/// The fields of a request: "after", "begin" (a time, or so long from `begin_in`), "retries", "requeue".
void decode_batch(Decoder& decoder, Batch& batch, std::optional<std::chrono::milliseconds>& begin_in);
/// The fields of a stored task, those that are not as usual.
Batch decode_stored_batch(Decoder& decoder);
void write(JsonWriter& writer, const ArrayMembership& array);
/// Nothing when there are none.
void write(JsonWriter& writer, std::string_view name, const std::vector<Dependency>& dependencies);
std::vector<Dependency> decode_stored_dependencies(Decoder& decoder, const std::string& name);

}  // namespace drover::workload
