#include "placement/schedule/verdicts.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

namespace drover::placement::schedule {
namespace {

/// What is found out once for all jobs of a shape.
struct OfShape {
  bool fits_now = false;      ///< but for what is kept for others
  bool fits_briefly = false;  ///< if its time limit ended it in time
  Reasons reasons;            ///< when it does not fit
};

class Explainer {
 public:
  Explainer(Room& room, const LimitLedger& limits, std::optional<TimePoint> reserved_at, TimePoint now)
      : room_(room), limits_(limits), reserved_at_(reserved_at), now_(now) {}

  void prepare(const std::vector<Verdict>& verdicts) {
    if (reserved_at_ > now_)
      for (const auto& verdict : verdicts)
        if (needs_room(verdict) && !by_shape_.contains(verdict.shape))
          by_shape_[verdict.shape].fits_briefly = fits(room_.brief(), *verdict.shape->gang);
    auto& bare = room_.bare();
    for (const auto& verdict : verdicts) {
      if (!needs_room(verdict) || !explained_.emplace(verdict.shape, true).second) continue;
      auto& of = by_shape_[verdict.shape];
      of.reasons = why_not(bare, *verdict.shape->gang);
      of.fits_now = of.reasons.list.empty();
    }
  }

  Reasons of(const Verdict& verdict) {
    auto reasons = of_cause(verdict);
    if (verdict.cause != Cause::kLimit) {
      if (before_ == 0) first_ = load_text(verdict.shape->total);
      ++before_;
    }
    return reasons;
  }

 private:
  static bool needs_room(const Verdict& verdict) { return verdict.cause == Cause::kRoom; }

  static bool fits(Cluster& cluster, const Gang& gang) { return try_place(cluster, gang).has_value(); }

  static Reasons why_not(Cluster& cluster, const Gang& gang) {
    auto answer = place(cluster, gang);
    auto* reasons = std::get_if<Reasons>(&answer);
    return reasons == nullptr ? Reasons{} : std::move(*reasons);
  }

  Reasons of_cause(const Verdict& verdict) const {
    switch (verdict.cause) {
      case Cause::kLimit:
        return of_limit(verdict);
      case Cause::kRoom:
        return of_room(verdict);
      case Cause::kEnding:
        return {0, {{Dimension::kPreemption, 0, "it waits for the end of jobs that are being stopped"}}, {}};
      case Cause::kPreempting:
        return {0,
                {{Dimension::kPreemption, 0,
                  fmt::format("it waits for the end of {} that make{} room for it",
                              verdict.victims == 1 ? "1 job" : fmt::format("{} jobs", verdict.victims),
                              verdict.victims == 1 ? "s" : "")}},
                {}};
    }
    return {};
  }

  Reasons of_limit(const Verdict& verdict) const {
    const auto& account = limits_.account(verdict.excess.account);
    const auto i = verdict.excess.dimension;
    Reasons reasons;
    reasons.list.push_back({account.kind == AccountKind::kQueue ? Dimension::kQueueLimit : Dimension::kQuota,
                            0, excess_text(account, verdict.excess, verdict.shape->demand)});
    const auto left = *account.bounds[i] - account.now[i];
    if (left > 0 && left < verdict.shape->total[i] && verdict.job->gang.members.size() == 1)
      reasons.remedies.push_back("ask for at most " + amount_text(i, left));
    return reasons;
  }

  Reasons of_room(const Verdict& verdict) const {
    const auto& of = by_shape_.at(verdict.shape);
    auto reasons = of.reasons;
    if (before_ > 0)
      reasons.list.push_back(
          {Dimension::kOrder, 0,
           fmt::format("{} before it; the first waits for {}",
                       before_ == 1 ? "1 job stands" : fmt::format("{} jobs stand", before_), first_)});
    else if (reasons.list.empty())
      reasons.list.push_back({Dimension::kOrder, 0, "what it needs was free only while this was decided"});
    // When it is only thought, it is told by who looks further (control/preview.h).
    if (verdict.reserved && !verdict.estimated && reserved_at_ > now_)
      reasons.remedies.push_back(
          fmt::format("wait for {} at most: then enough jobs have come to their time limits",
                      format_duration(*reserved_at_ - now_)));
    if (!verdict.reserved && of.fits_briefly)
      reasons.remedies.push_back(fmt::format("give it a time limit of at most {}: then it need not wait",
                                             format_duration(*reserved_at_ - now_)));
    return reasons;
  }

  Room& room_;
  const LimitLedger& limits_;
  std::optional<TimePoint> reserved_at_;
  TimePoint now_;
  std::unordered_map<const Shape*, OfShape> by_shape_;
  std::unordered_map<const Shape*, bool> explained_;
  int before_ = 0;  ///< jobs that wait for room before the one that is looked at
  std::string first_;
};

}  // namespace

std::map<std::string, Reasons> explain(const std::vector<Verdict>& verdicts, Room& room,
                                       const LimitLedger& limits, std::optional<TimePoint> reserved_at,
                                       TimePoint now) {
  Explainer explainer(room, limits, reserved_at, now);
  explainer.prepare(verdicts);
  std::map<std::string, Reasons> result;
  for (const auto& verdict : verdicts) result.emplace(verdict.job->id, explainer.of(verdict));
  return result;
}

}  // namespace drover::placement::schedule
