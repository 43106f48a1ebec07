#pragma once

// Prepares claims for containers and takes that back. One book of claims, the checkpoint, says who has what;
// it is written before the CDI specification of a claim and changed after that is removed, so whenever the
// driver dies, a GPU that some container may be given stands in the book. So does a MIG instance: it is made
// after its claim stands there, and destroyed before that is taken out. Thread safe. Blocks while files are
// written or NVIDIA's driver makes instances, and, without holding up others, while the API server answers.
// set_gpus(), saw_instances(), made() and shares() never wait for any of that.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "kube/dra/book.h"
#include "kube/dra/claim_files.h"
#include "kube/dra/claim_specification.h"
#include "workload/resources.h"

namespace drover::kube::dra {

/// ResourceClaims at the API server, v1 or v1beta1. Every call ends in bounded time. Thread safe.
class ClaimSource {
 public:
  virtual ~ClaimSource() = default;
  /// kNotFound when there is none of the name.
  virtual Result<nlohmann::json> claim(const std::string& namespace_name, const std::string& name) = 0;
  /// All of the cluster; asked for only when the checkpoint is lost.
  virtual Result<std::vector<nlohmann::json>> claims() = 0;
  /// Has the manager say this of the claim's status, and nothing else any more; what the claim is then.
  /// kNotFound, or kInvalid, when there is none of the name or it has another uid.
  virtual Result<nlohmann::json> apply_status(const ClaimReference& claim, const nlohmann::json& status,
                                              const std::string& manager) = 0;
};

/// The MIG instances of the node's GPUs. Makes the device nodes that containers need. Thread safe.
class MigInstances {
 public:
  virtual ~MigInstances() = default;
  /// How containers are edited for an instance that is there; kNotFound when it is not.
  virtual Result<cdi::Edits> find(const gpu::MigPart& part) = 0;
  /// The same, for one that is made unless it is there.
  virtual Result<cdi::Edits> make(const gpu::MigPart& part) = 0;
  /// One that is not there is fine.
  virtual Status destroy(const gpu::MigPart& part) = 0;
};

/// What is arranged on the machine for those who share the GPUs of a claim, until it is undone. Thread safe.
class ClaimSharing {
 public:
  virtual ~ClaimSharing() = default;
  /// How containers with its GPUs that have MPS are edited. The same again does what is missing. kConflict
  /// while another claim has something else of one of the GPUs.
  virtual Result<cdi::Edits> make(const std::string& uid, const share::Arrangement& arrangement) = 0;
  /// For a claim that has nothing it does nothing.
  virtual Status undo(const std::string& uid) = 0;
  /// Undoes it for all claims but these.
  virtual Status keep_only(const std::set<std::string>& uids) = 0;
};

/// What a claim may have of GPUs that others have too.
struct ClaimShare {
  ClaimReference claim;
  std::vector<share::Limit> limits;
  std::string pages;  ///< the folder with them (share/pages.h) of one that is guarded; "": it is counted

  bool operator==(const ClaimShare&) const = default;
};

struct PreparerOptions {
  std::string driver;
  std::string pool;
  std::shared_ptr<ClaimSource> source;
  std::shared_ptr<ClaimFiles> files;
  /// Called while others wait.
  FindEdits edits;
  std::shared_ptr<MigInstances> mig = nullptr;            ///< may be absent, where no GPU is in MIG mode
  std::shared_ptr<ClaimSharing> sharing = nullptr;        ///< may be absent: then nothing can be arranged
  workload::ShareBy share_by = workload::ShareBy::kAuto;  ///< what keeps claims to their shares
  /// Claims have these GPUs, by UUID, from now on, and no others; administrators' are not among them. Asked
  /// before a claim gets any; may refuse what is new. May be absent.
  std::function<Status(const std::set<std::string>& uuids)> take;
  /// One sentence; may be absent.
  std::function<void(const std::string& text)> warn;
};

class Preparer {
 public:
  explicit Preparer(PreparerOptions options);
  ~Preparer();

  /// The node's GPUs by the names of their devices.
  void set_gpus(std::map<std::string, NodeGpu> gpus);

  /// Gives the claim its devices. A claim that has them already is answered without the API server. kConflict
  /// while another claim has one of them.
  Result<PreparedClaim> prepare(const ClaimReference& reference);
  /// Nobody may use the claim's devices any more. A claim that is not prepared is fine. A prepare() of the
  /// same claim that is under way fails.
  Status unprepare(const std::string& uid);

  /// Takes up what was left behind: claims that are gone are taken back; claims that no checkpoint tells of,
  /// but a CDI specification does, are taken into the book. Needed once before anything new is prepared,
  /// which prepare() sees to.
  Status recover();
  /// Writes specifications that are missing, or say something else than they would now.
  Status restore();

  Book book() const;
  // Of the claims in it, as far as they are prepared now. Never wait.
  std::vector<ClaimShare> shares() const;
  /// What the claim's status is to say (device_status.h); nothing when it is not among them.
  nlohmann::json statuses(const std::string& uid) const;

  /// The MIG instances that are made for claims. One that is destroyed is among them until saw_instances() is
  /// told of none. kUnavailable until recover() has succeeded: what it tells nothing of may be ours too.
  Result<std::set<gpu::MigPart>> made() const;
  /// What a look at the GPUs found; looks are told in their order. Passed over while a claim is prepared: the
  /// next look says the same or more.
  void saw_instances(const std::set<gpu::MigPart>& there);
  /// Tries again what could not be destroyed while its GPU did not answer.
  void destroy_left();

 private:
  struct Flight;
  Status load();
  Status take_stock();
  Status drop_gone_claims();
  Status remove_orphaned_pages();
  Status adopt_orphans(const std::map<std::string, std::string>& specifications);
  Status check_fit(const std::vector<AllocatedDevice>& devices) const;
  Result<PreparedClaim> resolved(const ClaimReference& reference, std::vector<AllocatedDevice> devices,
                                 bool sole) const;
  Result<std::vector<share::Limit>> guarded_limits(const PreparedClaim& claim) const;
  Result<PreparedClaim> commit(PreparedClaim claim);
  Result<std::string> specification_of(const PreparedClaim& claim) const;
  Status check_places(const PreparedClaim& claim) const;
  Status write_files(const PreparedClaim& claim, const std::string& specification);
  Status write_specification(const PreparedClaim& claim);
  Status forget(const std::string& uid);
  Status take() const;
  Status write_checkpoint();
  std::string pages_folder(const std::string& uid) const { return options_.files->pages_folder(uid); }
  std::shared_ptr<const std::map<std::string, NodeGpu>> gpus() const;
  std::shared_ptr<const Book> told() const;
  void publish();

  PreparerOptions options_;
  mutable std::mutex mutex_;  ///< of all below
  Book book_;
  std::set<gpu::MigPart> destroyed_;
  std::set<gpu::MigPart> left_;  ///< of those, what could not be: tried again when it is seen
  bool loaded_ = false;
  std::map<std::string, Flight> flights_;  ///< prepare() under way, by uid
  std::mutex recovery_;                    ///< held while recovering; taken before mutex_
  std::atomic<bool> recovered_ = false;
  mutable std::mutex news_;  ///< of what follows; nobody holds it for long. Taken after mutex_
  std::shared_ptr<const std::map<std::string, NodeGpu>> gpus_ =
      std::make_shared<const std::map<std::string, NodeGpu>>();
  std::set<gpu::MigPart> made_;                                        ///< as of the book and destroyed_
  std::shared_ptr<const Book> told_ = std::make_shared<const Book>();  ///< the book
};

}  // namespace drover::kube::dra
