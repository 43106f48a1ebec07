#pragma once

// The MIG instances of tasks: made before a container is, destroyed after it, and never lost sight of. What
// is a task's stands in its folder (the file `parts`) before it is made, and until it is destroyed; so
// whoever is killed in between leaves nothing that the next start does not know. Instances that no folder
// names belong to somebody else: they are never taken, changed or destroyed.
//
// Thread safe; calls for one task are made one at a time. Blocks while the driver answers.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "gpu/device_node.h"
#include "gpu/mig_facts.h"

namespace drover::container {

/// A MIG instance that is there, for a container.
struct MadePart {
  std::string uuid;                    ///< "MIG-…"
  std::vector<gpu::DeviceNode> nodes;  ///< its GPU's, and the two that say which part of it
};

/// Makes and destroys them. Thread safe; blocks.
class PartMaker {
 public:
  virtual ~PartMaker() = default;
  /// Whether there is an instance of that profile at that place, whole or half made.
  virtual Result<bool> exists(const gpu::MigPart& part) = 0;
  /// kConflict when something else has its place.
  virtual Result<MadePart> make(const gpu::MigPart& part) = 0;
  /// One that is not there is fine. kConflict while it is used.
  virtual Status destroy(const gpu::MigPart& part) = 0;
};

class PartBook {
 public:
  /// With what the task folders below <state>/tasks say. kCorrupt, naming the file, when one cannot be read:
  /// what it means would be taken for somebody else's.
  static Result<std::unique_ptr<PartBook>> open(const std::string& state, std::unique_ptr<PartMaker> maker);

  /// Makes them for this task, in their order. What the folder names from before is destroyed first.
  /// kConflict when an instance has the place, or another task's has not gone yet. On an error some may be
  /// made: release() destroys them.
  Result<std::vector<MadePart>> make(const Directory& folder, const std::string& task_id,
                                     const std::vector<gpu::MigPart>& parts);
  /// Destroys those of the task. Idempotent. What cannot be destroyed stays its own.
  Status release(const Directory& folder, const std::string& task_id);
  /// UUIDs of those of the task, in their order; none before make() was through.
  static std::vector<std::string> uuids(const Directory& folder);

  /// All that tasks have, made or about to be.
  std::set<gpu::MigPart> parts() const;

 private:
  explicit PartBook(std::unique_ptr<PartMaker> maker) : maker_(std::move(maker)) {}
  Status claim(const std::string& task_id, const std::vector<gpu::MigPart>& parts);

  std::unique_ptr<PartMaker> maker_;
  mutable std::mutex mutex_;
  std::map<gpu::MigPart, std::string> owners_;  ///< task ids
};

}  // namespace drover::container
