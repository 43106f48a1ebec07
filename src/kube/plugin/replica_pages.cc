#include "kube/plugin/replica_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <utility>

#include "base/files.h"
#include "cdi/write.h"
#include "kube/plugin/allocation.h"
#include "kube/plugin/resources.h"

namespace drover::kube {
namespace {

constexpr const char* kPrefix = "k8s.device-plugin.nvidia.com-replica_";

/// "GPU-…_2_17_9f86d081884c7d65": the replica, the number, and what nobody can guess.
std::string name_of(const std::string& id, std::uint64_t number) {
  std::random_device random;
  const auto mark = id.find("::");
  return fmt::format("{}_{}_{}_{:08x}{:08x}", id.substr(0, mark), id.substr(mark + 2), number, random(),
                     random());
}

struct NameParts {
  std::string id;
  std::uint64_t number = 0;
};

std::optional<NameParts> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (auto end = name.find('_'); end != std::string::npos; end = name.find('_', begin)) {
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() != 3) return std::nullopt;
  NameParts made{parts[0] + "::" + parts[1]};
  const auto* end = parts[2].data() + parts[2].size();
  if (std::from_chars(parts[2].data(), end, made.number).ptr != end) return std::nullopt;
  return made;
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
  for (const auto& name : names) {
    const auto parts = parts_of(name);
    if (!parts) {
      DROVER_CHECK_OK(remove(name));
      continue;
    }
    // Those of another version stay what their containers have; what they say is not known here.
    const auto limit = limit_in(pages_.path(name)).value_or(share::Limit{std::string(uuid_in(parts->id))});
    known_[name] = {{name, parts->id, limit, pages_.path(name)}, parts->number, now};
    last_ = std::max(last_, parts->number);
  }
  DROVER_TRY(const auto specifications, specifications_.read());
  for (const auto& [name, text] : specifications)
    if (!known_.contains(name)) DROVER_CHECK_OK(specifications_.remove(name));
  return {};
}

Result<GuardedReplica> ReplicaPages::make(const std::string& id, const share::Limit& limit,
                                          Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto name = name_of(id, ++last_);
  const GuardedReplica replica{name, id, limit, pages_.path(name)};
  known_[name] = {replica, last_, now};
  DROVER_CHECK_OK(pages_.keep(name, {limit}));
  DROVER_CHECK_OK(write(replica));
  return replica;
}

Status ReplicaPages::write(const GuardedReplica& replica) const {
  DROVER_TRY(auto edits, options_.edits(replica.limit.gpu));
  cdi::Specification made;
  made.kind = kReplicaCdiKind;
  // The device of the container's set, which stands behind it, says more.
  made.edits.environment = {"NVIDIA_VISIBLE_DEVICES=void"};
  made.edits.append(guarded_edits(edits.guard, replica.pages));
  made.devices.push_back({replica.name, {}, std::move(edits.gpu)});
  made.version = cdi::required_version(made);
  return specifications_.write(replica.name, cdi::write_specification(made));
}

Status ReplicaPages::restore(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Status outcome;
  for (const auto& [name, known] : known_)
    if (id.empty() || known.replica.id == id)
      if (auto written = write(known.replica); !written) outcome = std::move(written);
  return outcome;
}

Status ReplicaPages::saw(const std::set<std::string>& held, Clock::time_point asked) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> gone;
  for (auto& [name, known] : known_) {
    if (asked < known.made) continue;
    if (held.contains(known.replica.id))
      known.was_held = true;
    else if (known.was_held || asked - known.made > kPatience)
      gone.push_back(name);
  }
  return remove_all(gone);
}

bool ReplicaPages::has_several() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> ids;
  return std::ranges::any_of(known_,
                             [&](const auto& one) { return !ids.insert(one.second.replica.id).second; });
}

Status ReplicaPages::saw_pods(const std::map<std::string, ReplicaPod>& pods) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, const Known*> newest;  // by replica, of those whose pod is known
  for (auto& [name, known] : known_) {
    if (const auto pod = pods.find(name); pod != pods.end()) known.pod = pod->second.uid;
    auto& last = newest[known.replica.id];
    if (!known.pod.empty() && (last == nullptr || last->number < known.number)) last = &known;
  }
  std::vector<std::string> gone;
  for (const auto& [name, known] : known_) {
    const auto* last = newest[known.replica.id];
    const auto pod = pods.find(name);
    const bool runs = pod != pods.end() && pod->second.runs;
    if (last != nullptr && known.number < last->number && !known.pod.empty() && known.pod != last->pod &&
        !runs)
      gone.push_back(name);
  }
  return remove_all(gone);
}

/// No container is given pages that are not there.
Status ReplicaPages::remove(const std::string& name) {
  DROVER_CHECK_OK(specifications_.remove(name));
  return pages_.remove(name);
}

Status ReplicaPages::remove_all(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    DROVER_CHECK_OK(remove(name));
    known_.erase(name);
  }
  return {};
}

std::vector<GuardedReplica> ReplicaPages::replicas() const {
  const std::lock_guard lock(mutex_);
  std::vector<GuardedReplica> all;
  for (const auto& [name, known] : known_)
    if (known.replica.limit.bytes > 0) all.push_back(known.replica);
  return all;
}

}  // namespace drover::kube
