#pragma once

// What an XID, the number by which NVIDIA's driver reports an error, says about the GPU, and what is done
// about it: one table, after NVIDIA's catalogue (https://docs.nvidia.com/deploy/xid-errors/) and the list
// that its Kubernetes device plugin ignores. An operator may ignore more and watch what the table ignores.
// Values; thread safe.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::gpu {

enum class XidSubject {
  kApplication,  ///< what the program did
  kEngine,       ///< copy, video, JPEG and optical flow engines
  kMemory,
  kNvlink,
  kBus,
  kFirmware,  ///< the processors inside of the card that run NVIDIA's own code
  kDriver,
  kPower,
  kSecurity,
  kInformation,
  kUnknown,  ///< the table does not have it
};
/// "application", "memory", …
std::string_view to_string(XidSubject subject);

enum class XidVerdict {
  kIgnore,  ///< says nothing against the card; it is told and goes on being given out
  kRest,    ///< taken out; restarting the program helps, so it comes back when it has been quiet for a while
  kReset,   ///< taken out; the card needs a reset before it can be trusted again
};

/// Numbers from `first` to `last`.
struct XidFact {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  XidSubject subject = XidSubject::kUnknown;
  XidVerdict verdict = XidVerdict::kReset;
  std::string_view text;  ///< "it has fallen off the bus"
};
/// Ascending, without overlaps.
std::span<const XidFact> xid_table();
/// What the table says; for a number that it does not have, the worst.
XidFact xid_fact(std::uint64_t xid);

class XidPolicy {
 public:
  /// `disable` and `enable` are texts as NVIDIA's device plugin takes them in DP_DISABLE_HEALTHCHECKS and
  /// DP_ENABLE_HEALTHCHECKS: XID numbers with commas between, "xids" for every XID, or "all", which for
  /// `disable` means everything else that takes a GPU out as well. `enable` wins over `disable` and over the
  /// table. Capitals and spaces do not matter. Fails with kInvalid for anything else, which that plugin skips
  /// with a line in its log.
  static Result<XidPolicy> parse(std::string_view disable, std::string_view enable);

  /// What is done about it: the operator's word, or else the table's.
  XidVerdict verdict(std::uint64_t xid) const;
  /// Whether nothing but an XID may take a GPU out.
  bool only_xids() const { return disable_.everything; }

 private:
  struct Words {
    std::set<std::uint64_t> xids;
    bool every_xid = false;
    bool everything = false;  ///< not only XIDs
  };
  static Result<Words> parse_words(std::string_view text, std::string_view name);

  Words disable_;
  Words enable_;
};

}  // namespace drover::gpu
