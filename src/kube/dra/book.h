#pragma once

// Which claims have which GPUs of this node: the content of the checkpoint. Values; pure.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/mig.h"
#include "kube/dra/claim.h"
#include "share/arrangement.h"
#include "share/pages.h"

namespace drover::kube::dra {

struct PreparedDevice {
  AllocatedDevice allocated;
  std::string uuid;                 ///< of the GPU, or of the MIG device that was there before
  std::optional<gpu::MigPart> mig;  ///< of a MIG device
  bool made = false;                ///< the instance is made for the claim, and goes with it

  bool operator==(const PreparedDevice&) const = default;
};

struct PreparedClaim {
  ClaimReference reference;
  std::vector<PreparedDevice> devices;
  bool sole = false;                ///< is_sole()
  share::Arrangement sharing = {};  ///< what is arranged on the machine for it, and goes with it
  /// What its containers together are held to by the guard; none: their shares are counted.
  std::vector<share::Limit> limits = {};

  bool operator==(const PreparedClaim&) const = default;
  /// Instances that are made for it.
  std::vector<gpu::MigPart> made() const;
};

/// By the claim's uid.
using Book = std::map<std::string, PreparedClaim>;

std::string write_book(const Book& book);
/// kCorrupt for anything else than what write_book() makes, also that of another driver.
Result<Book> read_book(std::string_view text);

/// UUIDs of the GPUs, and of the MIG devices that were there before, that claims have: nobody else may be
/// given them. Administrators' are not among them.
std::set<std::string> gpus_in_use(const Book& book);

/// A GPU of the node, or a MIG device.
struct NodeGpu {
  std::string uuid;
  std::optional<std::int64_t> memory_bytes;
  std::optional<gpu::MigPart> mig;  ///< of a MIG device
  bool fixed = false;               ///< a MIG device that is there, and that the driver has not made
  std::string unhealthy;            ///< why only claims that tolerate it get it; "" for all others

  bool operator==(const NodeGpu&) const = default;
};

/// What a device is of its GPU, as a guard is to hold programs to it; none of a whole GPU, a MIG device, and
/// an administrator's. kUnsupported when it is not known how much memory the GPU has.
Result<std::optional<share::Limit>> share_of(const PreparedDevice& device,
                                             const std::map<std::string, NodeGpu>& gpus);

/// What the claim may have of each GPU that it has less than all of: its shares together, as a guard is to
/// hold it to. None where it has no share. kUnsupported where one cannot be held, or is less than `least`
/// bytes.
Result<std::vector<share::Limit>> limits_of(const PreparedClaim& claim,
                                            const std::map<std::string, NodeGpu>& gpus, std::uint64_t least);

/// Whether the book has room for the claim: a GPU is with one claim as a whole, or with several whose shares
/// add up to no more than all of it; two MIG devices never overlap. Administrators' devices are beside that.
/// kConflict names who has what.
Status check_free(const Book& book, const PreparedClaim& claim, const std::map<std::string, NodeGpu>& gpus);

}  // namespace drover::kube::dra
