#include "gpu/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gpu/nvml_abi.h"

namespace drover::gpu {
namespace {

constexpr int kMostStrikes = 32;

/// Something that happened, as against a state that every poll tells.
bool is_event(ReasonKind kind) {
  return kind == ReasonKind::kXid || kind == ReasonKind::kEcc;
}

/// Whether both are the same reason, perhaps with a new count or code.
bool is_same(const Reason& a, const Reason& b) {
  const bool numbered = a.kind == ReasonKind::kXid || a.kind == ReasonKind::kRecoveryAction;
  return a.kind == b.kind && a.instance == b.instance && (!numbered || a.number == b.number);
}

bool asks_for_nothing(const std::optional<RecoveryAction>& action) {
  return !action || *action == RecoveryAction::kNone || *action == RecoveryAction::kRecoverImex;
}

std::string action_text(std::uint64_t action) {
  constexpr std::array<std::string_view, 8> kTexts{
      "the driver asks for nothing",
      "the driver asks for a reset of it",
      "the driver asks for a reboot of the machine",
      "the driver asks to end work that uses it together with other GPUs",
      "the driver asks to end its work and reset it",
      "the driver asks to recover the memory fabric",
      "the driver asks for a reset of its bus",
      "the driver asks for a reboot of the whole system",
  };
  return action < kTexts.size() ? std::string(kTexts.at(action))
                                : fmt::format("the driver asks for recovery action {}", action);
}

std::string lost_text(std::uint64_t code) {
  if (code == NVML_ERROR_GPU_IS_LOST) return "the driver has lost it";
  if (code == NVML_ERROR_NOT_FOUND || code == NVML_ERROR_GPU_NOT_FOUND)
    return "the driver no longer lists it";
  return "the driver is not there";
}

std::string reason_text(const Reason& reason) {
  switch (reason.kind) {
    case ReasonKind::kXid:
      return fmt::format("XID {}: {}", reason.number, xid_fact(reason.number).text);
    case ReasonKind::kEcc:
      return fmt::format("{} memory error{} that could not be corrected", reason.number,
                         reason.number == 1 ? "" : "s");
    case ReasonKind::kLost:
      return lost_text(reason.number);
    case ReasonKind::kSilent:
      return reason.number == 0 ? "it does not answer"
                                : fmt::format("it answers with NVML error {}", reason.number);
    case ReasonKind::kPagesPending:
      return "bad memory pages wait for the driver to be loaded again";
    case ReasonKind::kRowsPending:
      return "bad memory rows wait for a reset";
    case ReasonKind::kRowsFailed:
      return "bad memory rows cannot be replaced";
    case ReasonKind::kRecoveryAction:
      return action_text(reason.number);
    case ReasonKind::kUnmonitored:
      return "the driver does not report its errors as they happen";
  }
  return "";
}

}  // namespace

std::string_view to_string(ReasonKind kind) {
  constexpr std::array<std::string_view, 9> kNames{
      "xid",           "ecc",          "lost",        "silent",
      "pages-pending", "rows-pending", "rows-failed", "recovery-action",
      "unmonitored"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string gone_text(std::uint64_t code) {
  if (code == NVML_ERROR_RESET_REQUIRED)
    return action_text(static_cast<std::uint64_t>(RecoveryAction::kReset));
  return code == NVML_ERROR_GPU_IS_LOST ? lost_text(code) : "";
}

std::string to_string(const Reason& reason) {
  auto text = reason_text(reason);
  if (reason.instance.gpu) text += fmt::format(", in GPU instance {}", *reason.instance.gpu);
  if (reason.instance.compute) text += fmt::format(", compute instance {}", *reason.instance.compute);
  return text;
}

bool MigInstance::overlaps(const MigInstance& other) const {
  const auto meet = [](const auto& a, const auto& b) { return !a || !b || *a == *b; };
  return meet(gpu, other.gpu) && meet(compute, other.compute);
}

bool Health::Gpu::healthy() const {
  return std::ranges::none_of(open, [](const Open& each) { return each.reason.takes_out; });
}

/// Opens it, or has it go on.
void Health::raise(Gpu& gpu, Reason reason, TimePoint now) const {
  if (reason.kind != ReasonKind::kXid && policy_.only_xids()) reason.takes_out = false;
  const auto found =
      std::ranges::find_if(gpu.open, [&](const Open& each) { return is_same(each.reason, reason); });
  if (found != gpu.open.end()) {
    // A card that goes on counting errors is no news each time.
    if (reason.kind != ReasonKind::kEcc) found->reason.number = reason.number;
    found->clean_since.reset();
    found->proven = false;
    return;
  }
  auto rest = is_event(reason.kind) ? timing_.quiet : timing_.stable;
  if (reason.kind == ReasonKind::kXid && policy_.verdict(reason.number) == XidVerdict::kReset)
    rest = timing_.quiet_reset;
  reason.since = now;
  gpu.open.push_back({reason, rest, std::nullopt, false});
}

void Health::see(Gpu& gpu, const XidSeen& seen, TimePoint now) const {
  gpu.xids.last = seen.xid;
  ++gpu.xids.counts[seen.xid];
  const bool takes_out = !seen.uuid.empty() && policy_.verdict(seen.xid) != XidVerdict::kIgnore;
  raise(gpu, {ReasonKind::kXid, seen.xid, seen.instance, takes_out, {}}, now);
}

void Health::see(Gpu& gpu, const MonitoringSeen& seen, TimePoint now) const {
  if (seen.monitored)
    std::erase_if(gpu.open, [](const Open& each) { return each.reason.kind == ReasonKind::kUnmonitored; });
  else
    raise(gpu, {ReasonKind::kUnmonitored, 0, {}, false, {}}, now);
}

void Health::see(Gpu& gpu, const DriverReloaded&, TimePoint) const {
  gpu.uncorrected.reset();
  for (auto& each : gpu.open) {
    if (!is_event(each.reason.kind)) continue;
    each.proven = true;
    each.clean_since.reset();
  }
}

bool Health::reset_seen(Gpu& gpu, const GpuPolled& polled) {
  const bool was_lost = std::ranges::any_of(
      gpu.open, [](const Open& each) { return each.reason.kind == ReasonKind::kLost && !each.clean_since; });
  return was_lost || (polled.uncorrected && gpu.uncorrected && *polled.uncorrected < *gpu.uncorrected);
}

void Health::see(Gpu& gpu, const GpuPolled& polled, TimePoint now) const {
  const bool answers = polled.answer == Answer::kAnswers;
  const bool clean = answers && asks_for_nothing(polled.action);
  const bool proof = clean && (polled.action.has_value() || reset_seen(gpu, polled));
  // What this poll does not say again has been clean since now, or longer.
  for (auto& each : gpu.open) {
    const auto kind = each.reason.kind;
    if (kind == ReasonKind::kUnmonitored) continue;
    const bool lost_now = polled.answer == Answer::kLost;
    const bool over = is_event(kind) ? clean : answers || (lost_now && kind == ReasonKind::kSilent);
    if (!over || (proof && !each.proven)) each.clean_since.reset();
    each.proven = over && (each.proven || proof);
    if (over && !each.clean_since) each.clean_since = now;
  }
  const auto level = [&](ReasonKind kind, bool says, std::uint64_t number, bool takes_out = true) {
    if (says) raise(gpu, {kind, number, {}, takes_out, {}}, now);
  };
  level(ReasonKind::kLost, polled.answer == Answer::kLost, polled.code);
  level(ReasonKind::kSilent, polled.answer == Answer::kSilent, polled.code);
  if (!answers) return;
  level(ReasonKind::kPagesPending, polled.pages_pending.value_or(false), 0);
  level(ReasonKind::kRowsPending, polled.rows_pending.value_or(false), 0, false);
  level(ReasonKind::kRowsFailed, polled.rows_failed.value_or(false), 0);
  const auto action = polled.action.value_or(RecoveryAction::kNone);
  level(ReasonKind::kRecoveryAction, action != RecoveryAction::kNone, static_cast<std::uint64_t>(action),
        !asks_for_nothing(action));
  if (polled.uncorrected) {
    // Errors from before the first look are the driver's to judge.
    level(ReasonKind::kEcc, gpu.uncorrected && *polled.uncorrected > *gpu.uncorrected, *polled.uncorrected);
    gpu.uncorrected = polled.uncorrected;
  }
}

std::chrono::milliseconds Health::wait(const Gpu& gpu, const Open& open) const {
  const auto once = open.proven ? timing_.stable : open.rest;
  if (!open.reason.takes_out) return once;
  auto wait = once;
  for (int strike = 1; strike < gpu.strikes && wait < timing_.longest; ++strike) wait *= 2;
  return std::min(wait, std::max(timing_.longest, once));
}

void Health::close_due(Gpu& gpu, TimePoint now) const {
  std::erase_if(gpu.open, [&](const Open& each) {
    return each.clean_since && now - *each.clean_since >= wait(gpu, each);
  });
}

template <typename Seen>
void Health::change(const std::string& uuid, const Seen& seen, TimePoint now,
                    std::vector<HealthChange>& changes) {
  auto& gpu = gpus_[uuid];
  HealthChange change{uuid, {}, {}, gpu.healthy(), true};
  const auto before = reasons(uuid);
  see(gpu, seen, now);
  if (change.was_healthy && !gpu.healthy()) {
    const bool again = gpu.healthy_since && now - *gpu.healthy_since < timing_.longest;
    gpu.strikes = again ? std::min(gpu.strikes + 1, kMostStrikes) : 1;
  }
  close_due(gpu, now);
  change.healthy = gpu.healthy();
  if (change.healthy && !change.was_healthy) gpu.healthy_since = now;
  const auto after = reasons(uuid);
  const auto missing_in = [](const std::vector<Reason>& all, const Reason& reason) {
    return std::ranges::none_of(all, [&](const Reason& each) { return is_same(each, reason); });
  };
  std::ranges::copy_if(after, std::back_inserter(change.opened),
                       [&](const Reason& r) { return missing_in(before, r); });
  std::ranges::copy_if(before, std::back_inserter(change.closed),
                       [&](const Reason& r) { return missing_in(after, r); });
  if (!change.opened.empty() || !change.closed.empty()) changes.push_back(std::move(change));
}

std::vector<HealthChange> Health::apply(const Observation& observation, TimePoint now) {
  std::vector<HealthChange> changes;
  std::visit(
      [&](const auto& seen) {
        if constexpr (requires { seen.uuid; })
          if (!seen.uuid.empty()) return change(seen.uuid, seen, now, changes);
        for (const auto& uuid : uuids()) change(uuid, seen, now, changes);
      },
      observation);
  return changes;
}

bool Health::healthy(const std::string& uuid) const {
  return healthy(uuid, {});
}

bool Health::healthy(const std::string& uuid, const MigInstance& instance) const {
  return std::ranges::none_of(reasons(uuid), [&](const Reason& reason) {
    return reason.takes_out && reason.instance.overlaps(instance);
  });
}

std::string Health::why_unhealthy(const std::string& uuid) const {
  std::string why;
  for (const auto& reason : reasons(uuid))
    if (reason.takes_out) why += (why.empty() ? "" : "; ") + to_string(reason);
  return why;
}

std::vector<Reason> Health::reasons(const std::string& uuid) const {
  std::vector<Reason> reasons;
  const auto found = gpus_.find(uuid);
  if (found != gpus_.end())
    for (const auto& each : found->second.open) reasons.push_back(each.reason);
  return reasons;
}

XidHistory Health::xids(const std::string& uuid) const {
  const auto found = gpus_.find(uuid);
  return found == gpus_.end() ? XidHistory{} : found->second.xids;
}

std::vector<std::string> Health::uuids() const {
  std::vector<std::string> uuids;
  for (const auto& [uuid, gpu] : gpus_) uuids.push_back(uuid);
  return uuids;
}

}  // namespace drover::gpu
