#include "workload/repetition.h"

#include "fuzz.h"

namespace {

using namespace drover;

/// Times go up, and what came due is counted as a walk from one to the next counts it.
void check_cron(const workload::Repetition& cron, const std::string& zone, TimePoint now) {
  constexpr int kSteps = 100;
  auto next = cron.first_not_before(now);
  const auto first = next;
  TimePoint last = now;
  for (int step = 0; step < kSteps && next; ++step) {
    fuzz::require(step == 0 || next->at > last);
    last = next->at;
    next = cron.first_after(last);
  }
  if (next) fuzz::require(cron.due(*first, next->at, last, 1).left_out == kSteps);
  const auto again = workload::Repetition::parse(cron.text_from(0), zone, now);
  fuzz::require(again && again->is_cron() && again->first_not_before(now) == first);
}

/// Times go up, first_after finds the first of them, and what is shown is read as the same.
void check(const workload::Repetition& repetition, const std::string& zone, TimePoint now) {
  std::optional<TimePoint> before;
  for (std::int64_t index = 0; index < 4; ++index) {
    const auto at = repetition.at(index);
    if (!at) break;
    fuzz::require(!before || *at >= *before);
    before = at;
  }
  if (repetition.count()) fuzz::require(!repetition.at(*repetition.count()));
  const auto next = repetition.first_after(now);
  if (next) {
    fuzz::require(next->at > now && repetition.at(next->index) == next->at);
    if (next->index > 0) fuzz::require(*repetition.at(next->index - 1) <= now);
  }
  const auto again = workload::Repetition::parse(repetition.text_from(0), zone, now);
  fuzz::require(again && again->period() == repetition.period());
  if (repetition.at(0)) fuzz::require(again->at(0) == repetition.at(0));
}

}  // namespace

/// A schedule, and behind a line's end the name of a time zone.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto end = std::min(text.find('\n'), text.size());
  const std::string zone(text.substr(std::min(end + 1, text.size())));
  const TimePoint now(std::chrono::hours(24 * 365 * 56));
  const auto repetition = workload::Repetition::parse(text.substr(0, end), zone, now);
  if (repetition && repetition->is_cron())
    check_cron(*repetition, zone, now);
  else if (repetition)
    check(*repetition, zone, now);
  else
    fuzz::require(!repetition.error().message.empty());
  if (const auto period = workload::parse_period(text)) {
    const auto again = workload::parse_period(workload::to_string(*period));
    fuzz::require(again && *again == *period);
  }
  return 0;
}
