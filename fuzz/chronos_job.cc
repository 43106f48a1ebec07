#include <nlohmann/json.hpp>

#include "chronos/job.h"
#include "fuzz.h"

namespace {

using namespace drover;

/// A job that was read can be kept, and its times can be told.
void check(std::string_view body, chronos::JobKind kind) {
  static const chronos::Attributes machine = {{"hostname", {"gpu1"}}, {"rack", {"r1"}}};
  const TimePoint now(std::chrono::hours(24 * 365 * 56));
  const auto job = chronos::read_job(body, kind, &machine, now);
  if (!job) {
    fuzz::require(!job.error().empty() && !job.error().front().message.empty());
    return;
  }
  const auto& schedule = job->schedule;
  fuzz::require(workload::is_schedule_name(schedule.name));
  fuzz::require(schedule.repetition.empty() == (kind == chronos::JobKind::kDependent));
  const auto stored = workload::decode_schedule(workload::encode(schedule));
  fuzz::require(stored && *stored == schedule);
  if (schedule.repetition.empty()) return;
  const auto times = workload::Repetition::parse(schedule.repetition, schedule.time_zone, now);
  fuzz::require(times.has_value());
  (void)times->first_after(now);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(fuzz::text_of(data, size), chronos::JobKind::kScheduled);
  check(fuzz::text_of(data, size), chronos::JobKind::kDependent);
  return 0;
}
