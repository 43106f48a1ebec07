#include "kube/plugin/replica_pages.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "base/files.h"
#include "cdi/write.h"
#include "kube/plugin/allocation.h"
#include "kube/plugin/resources.h"

namespace drover::kube {
namespace {

constexpr const char* kPrefix = "k8s.device-plugin.nvidia.com-replica_";

/// "GPU-…_2_9f86d081884c7d65": the replica, and what nobody can guess.
std::string name_of(const std::string& id) {
  std::random_device random;
  const auto mark = id.find("::");
  return fmt::format("{}_{}_{:08x}{:08x}", id.substr(0, mark), id.substr(mark + 2), random(), random());
}

/// The replica in such a name; "" for any other.
std::string id_in(const std::string& name) {
  const auto first = name.find('_'), second = name.find('_', first + 1);
  if (second == std::string::npos) return "";
  return name.substr(0, first) + "::" + name.substr(first + 1, second - first - 1);
}

Result<share::Limit> limit_in(const std::string& folder) {
  DROVER_TRY(const auto own, Directory::open(folder));
  DROVER_TRY(const auto pages, share::Pages::open(own));
  if (pages.limits().size() == 1) return pages.limits().front();
  return fail(ErrorKind::kCorrupt, fmt::format("'{}' has no pages of a replica", folder));
}

}  // namespace

ReplicaPages::ReplicaPages(Options options)
    : options_(std::move(options)), pages_(options_.folder), specifications_(options_.cdi_folder, kPrefix) {}

Status ReplicaPages::take_up(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  DROVER_CHECK_OK(pages_.remove_unfinished());
  DROVER_CHECK_OK(specifications_.remove_unfinished());
  DROVER_TRY(const auto names, pages_.list());
  Status outcome;
  for (const auto& name : names) {
    const auto id = id_in(name);
    if (id.empty()) {
      if (auto removed = remove(name); !removed) outcome = std::move(removed);
      continue;
    }
    // Those of another version stay what their containers have; what they say is not known here.
    const auto limit = limit_in(pages_.path(name)).value_or(share::Limit{std::string(uuid_in(id))});
    // Whoever was being given something when that process ended has not got it.
    known_[name] = {.replica = {name, id, limit, pages_.path(name)}, .made = now, .was_started = true};
  }
  DROVER_TRY(const auto specifications, specifications_.read());
  for (const auto& [name, text] : specifications)
    if (!known_.contains(name))
      if (auto removed = specifications_.remove(name); !removed) outcome = std::move(removed);
  return outcome;
}

Result<GuardedReplica> ReplicaPages::make(const std::string& id, const share::Limit& limit,
                                          const GpuEdits& edits, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, known] : known_)
    known.is_past = known.is_past || (known.replica.id == id && known.was_started);
  const auto name = name_of(id);
  const GuardedReplica replica{name, id, limit, pages_.path(name)};
  known_[name] = {.replica = replica, .made = now};
  DROVER_CHECK_OK(pages_.keep(name, {limit}));
  DROVER_CHECK_OK(write(replica, edits));
  return replica;
}

Status ReplicaPages::write(const GuardedReplica& replica, const GpuEdits& edits) const {
  const auto gpu = edits.of_gpu.find(replica.limit.gpu);
  if (gpu == edits.of_gpu.end())
    return fail(ErrorKind::kNotFound, fmt::format("GPU {} has no device node now", replica.limit.gpu));
  cdi::Specification made;
  made.kind = kReplicaCdiKind;
  // The device of the container's set, which stands behind it, says more.
  made.edits.environment = {"NVIDIA_VISIBLE_DEVICES=void"};
  made.edits.append(guarded_edits(edits, replica.pages));
  made.devices.push_back({replica.name, {}, gpu->second});
  made.version = cdi::required_version(made);
  return specifications_.write(replica.name, cdi::write_specification(made));
}

Status ReplicaPages::start(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, known] : known_) {
    if (known.replica.id != id || known.is_past) continue;
    known.was_started = true;
    DROVER_TRY(const auto edits, options_.edits());
    DROVER_CHECK_OK(write(known.replica, edits));
  }
  return {};
}

Status ReplicaPages::restore() const {
  const std::lock_guard lock(mutex_);
  if (known_.empty()) return {};
  DROVER_TRY(const auto edits, options_.edits());
  Status outcome;
  for (const auto& [name, known] : known_)
    if (auto written = write(known.replica, edits); !written) outcome = std::move(written);
  return outcome;
}

Status ReplicaPages::saw(const std::set<std::string>& held, Clock::time_point asked) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> gone;
  for (auto& [name, known] : known_) {
    const bool is_held = held.contains(known.replica.id);
    if (asked >= known.made && is_held) known.was_held = true;
    const bool is_over =
        !is_held && asked >= known.made && (known.was_held || asked - known.made > kPatience);
    if (known.is_past || is_over) gone.push_back(name);
  }
  for (const auto& name : gone) {
    DROVER_CHECK_OK(remove(name));
    known_.erase(name);
  }
  return {};
}

/// No container is given pages that are not there.
Status ReplicaPages::remove(const std::string& name) {
  DROVER_CHECK_OK(specifications_.remove(name));
  return pages_.remove(name);
}

std::vector<GuardedReplica> ReplicaPages::replicas() const {
  const std::lock_guard lock(mutex_);
  std::vector<GuardedReplica> all;
  for (const auto& [name, known] : known_)
    if (known.replica.limit.bytes > 0) all.push_back(known.replica);
  return all;
}

}  // namespace drover::kube
