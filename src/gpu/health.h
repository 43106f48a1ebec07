#pragma once

// Which GPUs are fit to be given out, and why not: a state that observations change. Pure: it is handed what
// was seen and the time, and says what changed. One GPU's observations never change another. Not thread safe.
//
//   Health health(policy, {});
//   for (const auto& change : health.apply(XidSeen{uuid, 79}, now)) …
//
// A GPU is healthy as long as no open reason takes it out; reasons that do not are told all the same (an XID
// that says nothing against the card, an unmonitored GPU). Every reason comes to an end:
//
// | reason | it ends when |
// | --- | --- |
// | lost, silent, pages or rows pending, a recovery action | polls have said otherwise for `stable` |
// | XID, ECC errors: the driver tells recovery actions | it has asked for none for `stable` |
// | XID, ECC errors: a reset was seen | clean polls since then for `stable` |
// | XID, ECC errors: neither | clean polls for `quiet`, or `quiet_reset` if the card needs a reset |
//
// A reset was seen when a lost GPU answers again, when its counters of ECC errors go back, or when the driver
// was loaded again. A poll is clean when the GPU answers and no recovery action is asked for; anything else,
// and every repeated error, starts the time anew. A GPU that is taken out again within `longest` after it
// came back waits twice as long as the last time, but no longer than `longest`: so a bad card costs fewer and
// fewer jobs. Rows that could not be replaced stay as long as the card says so.
//
// Nothing is kept over a restart: a reset needs all clients of a GPU gone, this process among them, and
// drivers since 565 still tell then what a GPU needs.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "gpu/xid_policy.h"

namespace drover::gpu {

/// A part of a GPU in MIG mode. Absent ids stand for all: without both it is the whole GPU.
struct MigInstance {
  std::optional<std::uint32_t> gpu;      ///< GPU instance id
  std::optional<std::uint32_t> compute;  ///< compute instance id within it

  bool overlaps(const MigInstance& other) const;
  bool operator==(const MigInstance&) const = default;
};

/// What the driver asks for (NVML's nvmlDeviceGpuRecoveryAction_t).
enum class RecoveryAction : std::uint8_t {
  kNone = 0,
  kReset = 1,
  kReboot = 2,
  kDrainP2p = 3,
  kDrainAndReset = 4,
  kRecoverImex = 5,  ///< of the cluster's memory fabric; this GPU may work on
  kBusReset = 6,
  kSystemReboot = 7,
};

struct XidSeen {
  std::string uuid;  ///< "" when nothing tells whose it is: then it is told at every GPU, and takes none out
  std::uint64_t xid = 0;
  MigInstance instance;
};

enum class Answer {
  kAnswers,
  kLost,    ///< the driver says that it is lost, no longer lists it, or is not there itself
  kSilent,  ///< a call does not return, or fails without a meaning
};

struct GpuPolled {
  std::string uuid;
  Answer answer = Answer::kAnswers;
  std::uint64_t code = 0;  ///< NVML's return code with kLost and kSilent; 0 for a call that does not return
  // Absent where the card or the library cannot tell.
  std::optional<std::uint64_t> uncorrected;  ///< ECC errors since the last reset
  std::optional<bool> pages_pending;         ///< bad pages wait for the driver to be loaded again
  std::optional<bool> rows_pending;          ///< bad rows wait for a reset
  std::optional<bool> rows_failed;           ///< bad rows cannot be replaced
  std::optional<RecoveryAction> action;
};

struct MonitoringSeen {
  std::string uuid;
  bool monitored = false;  ///< whether the driver reports its errors as they happen
};

struct DriverReloaded {};

using Observation = std::variant<XidSeen, GpuPolled, MonitoringSeen, DriverReloaded>;

enum class ReasonKind {
  kXid,
  kEcc,
  kLost,
  kSilent,
  kPagesPending,
  kRowsPending,  ///< takes no GPU out: NVIDIA lets new work start on it
  kRowsFailed,
  kRecoveryAction,
  kUnmonitored,  ///< takes no GPU out: polls go on
};
/// "xid", "ecc", "lost", "silent", "pages-pending", "rows-pending", "rows-failed", "recovery-action",
/// "unmonitored".
std::string_view to_string(ReasonKind kind);

struct Reason {
  ReasonKind kind = ReasonKind::kXid;
  /// The XID, the recovery action, how many ECC errors there were when it opened, or NVML's return code.
  std::uint64_t number = 0;
  MigInstance instance;
  bool takes_out = true;
  TimePoint since;

  bool operator==(const Reason&) const = default;
};
/// In words, to follow a GPU's name: "XID 79: it has fallen off the bus".
std::string to_string(const Reason& reason);

/// What NVML's return codes say of a GPU that is gone, in the words of its reasons: also before health has
/// judged it. "" for codes that do not say so.
std::string gone_text(std::uint64_t code);

/// What one observation did to one GPU.
struct HealthChange {
  std::string uuid;
  std::vector<Reason> opened;
  std::vector<Reason> closed;
  bool was_healthy = true;
  bool healthy = true;

  bool operator==(const HealthChange&) const = default;
};

/// The XIDs of one GPU since the watch began.
struct XidHistory {
  std::optional<std::uint64_t> last;
  std::map<std::uint64_t, std::uint64_t> counts;  ///< by XID

  bool operator==(const XidHistory&) const = default;
};

struct HealthTiming {
  std::chrono::milliseconds stable = std::chrono::seconds(30);
  std::chrono::milliseconds quiet = std::chrono::minutes(5);
  std::chrono::milliseconds quiet_reset = std::chrono::hours(1);
  std::chrono::milliseconds longest = std::chrono::hours(24);
};

class Health {
 public:
  explicit Health(XidPolicy policy, HealthTiming timing = {}) : policy_(std::move(policy)), timing_(timing) {}

  /// A GPU is known from its first observation on, or from here on, and for good.
  void know(const std::string& uuid) { gpus_.try_emplace(uuid); }
  /// The changes, by UUID. Time passes only here: a GPU that is polled comes back when it is due.
  std::vector<HealthChange> apply(const Observation& observation, TimePoint now);

  /// Whether the whole GPU may be given out; one that is not known may.
  bool healthy(const std::string& uuid) const;
  /// Whether this part of it may be.
  bool healthy(const std::string& uuid, const MigInstance& instance) const;
  /// Every reason that takes it out, in words; "" when it is healthy.
  std::string why_unhealthy(const std::string& uuid) const;
  /// The open ones, in the order in which they opened.
  std::vector<Reason> reasons(const std::string& uuid) const;
  XidHistory xids(const std::string& uuid) const;
  std::vector<std::string> uuids() const;

 private:
  struct Open {
    Reason reason;
    std::chrono::milliseconds rest{};      ///< how long it has to be clean, without back-off
    std::optional<TimePoint> clean_since;  ///< since when nothing speaks for it
    bool proven = false;                   ///< that it is over: by a reset, or by the driver's word
  };
  struct Gpu {
    std::vector<Open> open;
    std::optional<std::uint64_t> uncorrected;  ///< at the last poll that told
    std::optional<TimePoint> healthy_since;    ///< the last time that it came back
    int strikes = 0;                           ///< how often it was taken out in a row
    XidHistory xids;

    bool healthy() const;
  };

  void raise(Gpu& gpu, Reason reason, TimePoint now) const;
  void see(Gpu& gpu, const XidSeen& seen, TimePoint now) const;
  void see(Gpu& gpu, const GpuPolled& polled, TimePoint now) const;
  void see(Gpu& gpu, const MonitoringSeen& seen, TimePoint now) const;
  void see(Gpu& gpu, const DriverReloaded& seen, TimePoint now) const;
  static bool reset_seen(Gpu& gpu, const GpuPolled& polled);
  void close_due(Gpu& gpu, TimePoint now) const;
  std::chrono::milliseconds wait(const Gpu& gpu, const Open& open) const;
  template <typename Seen>
  void change(const std::string& uuid, const Seen& seen, TimePoint now, std::vector<HealthChange>& changes);

  XidPolicy policy_;
  HealthTiming timing_;
  std::map<std::string, Gpu> gpus_;
};

}  // namespace drover::gpu
