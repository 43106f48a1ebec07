#include "share/host_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files.h"

namespace drover::share {
namespace {

constexpr const char* kRecord = "sharing.json";
constexpr const char* kUnreadable = "sharing.json.unreadable";
constexpr const char* kDaemons = "/mps";

/// It is the driver's own as long as nobody asks for another one, and needs none of its programs.
bool is_default(const std::pair<const std::string, Interval>& interval) {
  return interval.second == Interval::kDefault;
}

}  // namespace

HostShares::HostShares(Options options) : options_(std::move(options)), daemons_(options_.state + kDaemons) {}

Status HostShares::load() {
  if (loaded_) return {};
  DROVER_TRY(const auto folder, Directory::create(options_.state, 0711));
  DROVER_CHECK_OK(folder.remove_unfinished(kRecord));
  if (folder.exists(kRecord)) {
    DROVER_TRY(const auto text, folder.read(kRecord));
    auto ledger = read_ledger(text);
    if (!ledger) {
      DROVER_CHECK_OK(folder.write(kUnreadable, text, 0600));
      options_.warn(to_string(ledger.error()) +
                    "; it is set aside: 'nvidia-smi' tells of GPUs whose compute mode was left changed");
      ledger = Ledger();
    }
    ledger_ = std::move(*ledger);
  }
  loaded_ = true;
  return {};
}

Status HostShares::write() const {
  DROVER_TRY(const auto folder, Directory::open(options_.state));
  return folder.write(kRecord, write_ledger(ledger_), 0600);
}

Status HostShares::make(const std::string& owner, const Arrangement& arrangement) {
  if (!is_owner(owner))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no name of one who shares GPUs", owner));
  const std::scoped_lock lock(mutex_);
  DROVER_CHECK_OK(load());
  DROVER_CHECK_OK(check_room(ledger_, owner, arrangement));
  const auto known = ledger_.owners.find(owner);
  const bool has_it = known != ledger_.owners.end() && known->second == arrangement;
  const bool is_anew = ending_.erase(owner) > 0 || !has_it;
  if (!has_it) {
    if (known != ledger_.owners.end()) DROVER_CHECK_OK(drop(owner));
    ledger_.owners[owner] = arrangement;
    if (auto written = write(); !written) {
      ledger_.owners.erase(owner);
      return written;
    }
  }
  auto settled = settle(owner);
  if (settled || !is_anew) return settled;
  if (const auto undone = end_now(owner); !undone) options_.warn(to_string(undone.error()));
  return settled;
}

/// Does of what is recorded what this process has not done yet, or what has ended since.
Status HostShares::settle(const std::string& owner) {
  const auto& arrangement = ledger_.owners.at(owner);
  if (settled_.contains(owner) && (!arrangement.mps || daemons_.runs(owner))) return {};
  if (!arrangement.mps && std::ranges::all_of(arrangement.intervals, is_default)) return {};
  DROVER_TRY(const auto programs, options_.programs());
  for (const auto& [gpu, interval] : arrangement.intervals) {
    if (interval == Interval::kDefault) continue;
    if (!std::exchange(ledger_.gpus[gpu].interval, true)) DROVER_CHECK_OK(write());
    DROVER_CHECK_OK(set_interval(programs, gpu, interval));
  }
  if (const auto& mps = arrangement.mps) {
    if (programs.mps_control.empty())
      return fail(ErrorKind::kNotFound, "this machine has no 'nvidia-cuda-mps-control', which MPS takes",
                  "NVIDIA's packages for computing have it");
    for (const auto& gpu : mps->gpus) DROVER_CHECK_OK(set_exclusive(programs, gpu));
    DROVER_CHECK_OK(start_daemon(owner, *mps, programs));
  }
  settled_.insert(owner);
  return {};
}

/// One that was there before, and is not now, has ended by itself, whether or not anybody was there to see
/// it.
Status HostShares::start_daemon(const std::string& owner, const MpsLimits& limits, const Programs& programs) {
  if (daemons_.runs(owner)) return {};
  DROVER_TRY(const auto known, daemons_.owners());
  DROVER_CHECK_OK(daemons_.start(owner, limits, programs));
  if (std::ranges::find(known, owner) == known.end()) return {};
  options_.warn(fmt::format("the MPS control daemon of '{}' had ended: it is started again", owner));
  if (options_.restarted) options_.restarted(owner);
  return {};
}

/// A mode that somebody else has set stays: he means something by it, and may set it again while MPS is used.
Status HostShares::set_exclusive(const Programs& programs, const std::string& gpu) {
  if (!ledger_.gpus[gpu].exclusive) {
    DROVER_TRY(const auto mode, compute_mode(programs, gpu));
    if (mode != ComputeMode::kDefault)
      return fail(
          ErrorKind::kConflict,
          fmt::format("GPU {} has the compute mode {}, which somebody has set: it is not shared by MPS", gpu,
                      name_of(mode)),
          fmt::format("'nvidia-smi -i {} -c {}' takes it back", gpu,
                      static_cast<int>(ComputeMode::kDefault)));
    ledger_.gpus[gpu].exclusive = true;
    DROVER_CHECK_OK(write());
  }
  return set_compute_mode(programs, gpu, ComputeMode::kExclusiveProcess);
}

/// The daemon of one who is gone from the record is no longer anybody's: keep() tries again to end it.
Status HostShares::drop(const std::string& owner) {
  const auto found = ledger_.owners.find(owner);
  if (found == ledger_.owners.end()) return {};
  if (found->second.mps) {
    const auto programs = options_.programs();
    const auto ended = daemons_.end(owner, programs ? &*programs : nullptr);
    if (!ended) options_.warn(to_string(ended.error()));
  }
  const auto dropped = ledger_.owners.extract(found);
  settled_.erase(owner);
  if (auto written = write(); !written) {
    ledger_.owners[owner] = dropped.mapped();
    return written;
  }
  if (const auto back = put_back(); !back) options_.warn(to_string(back.error()));
  return {};
}

/// Stops at the first GPU that does not answer in time: the others are tried by the next call.
Status HostShares::put_back() {
  std::vector<std::string> gpus;
  for (const auto& [gpu, changed] : ledger_.gpus) {
    const bool mode_left = changed.exclusive && !wants_mps(ledger_, gpu);
    const bool interval_left = changed.interval && !wants_interval(ledger_, gpu);
    if (mode_left || interval_left || changed.empty()) gpus.push_back(gpu);
  }
  if (gpus.empty()) return {};
  DROVER_TRY(const auto programs, options_.programs());
  Status first;
  for (const auto& gpu : gpus) {
    const auto done = put_back(programs, gpu);
    if (!done && first) first = done;
    if (!done && done.error().kind == ErrorKind::kTimeout) break;
  }
  DROVER_CHECK_OK(write());
  return first;
}

Status HostShares::put_back(const Programs& programs, const std::string& gpu) {
  auto& changed = ledger_.gpus[gpu];
  if (changed.interval && !wants_interval(ledger_, gpu)) {
    DROVER_CHECK_OK(set_interval(programs, gpu, Interval::kDefault));
    changed.interval = false;
  }
  if (changed.exclusive && !wants_mps(ledger_, gpu)) {
    DROVER_CHECK_OK(set_compute_mode(programs, gpu, ComputeMode::kDefault));
    changed.exclusive = false;
  }
  if (changed.empty()) ledger_.gpus.erase(gpu);
  return {};
}

Status HostShares::undo(const std::string& owner) {
  const std::scoped_lock lock(mutex_);
  DROVER_CHECK_OK(load());
  return drop(owner);
}

Status HostShares::end(const std::string& owner) {
  const std::scoped_lock lock(mutex_);
  DROVER_CHECK_OK(load());
  return end_now(owner);
}

/// Its GPUs are its own alone until all is as it was: so it stays in the record as long.
Status HostShares::end_now(const std::string& owner) {
  const auto found = ledger_.owners.find(owner);
  if (found == ledger_.owners.end()) return daemons_.end(owner, nullptr);
  ending_.insert(owner);
  settled_.erase(owner);
  const auto programs = options_.programs();
  DROVER_CHECK_OK(daemons_.end(owner, programs ? &*programs : nullptr));
  for (const auto& gpu : found->second.mps ? found->second.mps->gpus : std::vector<std::string>()) {
    const auto changed = ledger_.gpus.find(gpu);
    if (changed == ledger_.gpus.end() || !changed->second.exclusive) continue;
    if (!programs) return Failure(programs.error());
    DROVER_CHECK_OK(set_compute_mode(*programs, gpu, ComputeMode::kDefault));
    changed->second.exclusive = false;
  }
  ending_.erase(owner);
  return drop(owner);
}

Status HostShares::keep_only(const std::string& prefix,
                             const std::function<bool(const std::string& owner)>& is_there) {
  const std::scoped_lock lock(mutex_);
  DROVER_CHECK_OK(load());
  std::vector<std::string> gone;
  for (const auto& [owner, arrangement] : ledger_.owners)
    if (owner.starts_with(prefix) && !is_there(owner)) gone.push_back(owner);
  for (const auto& owner : gone) DROVER_CHECK_OK(drop(owner));
  return {};
}

Status HostShares::end_ownerless() {
  DROVER_TRY(const auto there, daemons_.owners());
  for (const auto& owner : there)
    if (const auto known = ledger_.owners.find(owner); known == ledger_.owners.end() || !known->second.mps)
      DROVER_CHECK_OK(daemons_.end(owner, nullptr));
  return {};
}

Status HostShares::keep() {
  const std::scoped_lock lock(mutex_);
  DROVER_CHECK_OK(load());
  Status first = end_ownerless();
  const auto note = [&](Status status) {
    if (!status && first) first = std::move(status);
  };
  note(put_back());
  for (const auto& owner : std::set(ending_)) note(end_now(owner));
  for (const auto& [owner, arrangement] : ledger_.owners) {
    if (!first && first.error().kind == ErrorKind::kTimeout) break;  // the next call goes on
    if (!ending_.contains(owner)) note(settle(owner));
  }
  return first;
}

}  // namespace drover::share
