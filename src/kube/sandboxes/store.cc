#include "kube/sandboxes/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/decode.h"
#include "base/disk_space.h"
#include "kube/client/object.h"
#include "kube/sandboxes/names.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr const char* kVolumes = "kubernetes.io~csi";
constexpr const char* kMount = "mount";
constexpr std::size_t kUidLength = 36, kLongestName = 253;
constexpr int kLeastFreePart = 10;

bool is_volume_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

Failure refuse(const std::string& what) {
  return fail(ErrorKind::kInvalid, what, "only the kubelet of this node is served");
}

Failure missing() {
  return fail(ErrorKind::kNotFound, "The node has no sandbox of this task any more");
}

/// "1000:100"
std::optional<std::pair<uid_t, gid_t>> read_owner(std::string_view text) {
  std::pair<uid_t, gid_t> owner{};
  const auto* const end = text.data() + text.size();
  const auto [colon, wrong] = std::from_chars(text.data(), end, owner.first);
  if (wrong != std::errc() || colon == end || *colon != ':') return std::nullopt;
  const auto [rest, also_wrong] = std::from_chars(colon + 1, end, owner.second);
  if (also_wrong != std::errc() || rest != end) return std::nullopt;
  return owner;
}

/// Of a record: nobody will ever find by it what it is of. What could not be read now may be read later.
bool says_nothing(const Error& error) {
  return error.kind == ErrorKind::kNotFound || error.kind == ErrorKind::kInvalid ||
         error.kind == ErrorKind::kCorrupt;
}

/// Both on one file system, and for the kernel in one mount.
Status move(const Directory& from, const char* name, const Directory& to, const std::string& new_name) {
  if (::renameat(from.fd(), name, to.fd(), new_name.c_str()) != 0)
    return fail_errno(fmt::format("Failed to move '{}/{}' to '{}'", from.path(), name, to.path()), errno);
  DROVER_CHECK_OK(to.sync());
  return from.sync();
}

}  // namespace

/// What a target says.
struct SandboxStore::Place {
  std::string uid, volume;
};

struct SandboxStore::Record {
  std::string id;      ///< the volume's
  std::string volume;  ///< its name in the pod
  std::string name_space, pod;
  std::int64_t ended = 0;  ///< s since 1970; 0: it lives
  bool unwanted = false;
};

bool is_uid(std::string_view text) {
  return text.size() == kUidLength && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == '-';
         });
}

Result<SandboxStore> SandboxStore::open(const std::string& kubelet) {
  DROVER_TRY(auto root, Directory::open(kubelet));
  DROVER_TRY(auto own, Directory::create(fmt::format("{}/plugins/{}", kubelet, kSandboxDriver), 0700));
  // What is inside is read with a tenant's rights, by its descriptor: nobody passes here by a path.
  if (::fchmod(own.fd(), 0700) != 0) return fail_errno("Failed to close the folder of sandboxes", errno);
  DROVER_TRY(auto records, own.make_subdirectory("records", 0700));
  DROVER_TRY(auto kept, own.make_subdirectory("kept", 0700));
  DROVER_TRY(auto gone, own.make_subdirectory("gone", 0700));
  return SandboxStore(std::move(root), std::move(own), std::move(records), std::move(kept), std::move(gone));
}

SandboxStore::SandboxStore(Directory kubelet, Directory own, Directory records, Directory kept,
                           Directory gone)
    : kubelet_(std::move(kubelet)),
      own_(std::move(own)),
      records_(std::move(records)),
      kept_(std::move(kept)),
      gone_(std::move(gone)) {}

SandboxStore::SandboxStore(SandboxStore&& other) noexcept
    : kubelet_(std::move(other.kubelet_)),
      own_(std::move(other.own_)),
      records_(std::move(other.records_)),
      kept_(std::move(other.kept_)),
      gone_(std::move(other.gone_)),
      sizes_(std::move(other.sizes_)) {}

Result<SandboxStore::Place> SandboxStore::place_of(const std::string& target) const {
  const auto pods = kubelet_.path() + "/pods/";
  const auto volumes = fmt::format("/volumes/{}/", kVolumes);
  const auto end = fmt::format("/{}", kMount);
  const std::string_view text = target;
  const auto refused = [&] {
    return refuse(fmt::format("'{}' is not where the kubelet has a pod's volume", target));
  };
  if (!text.starts_with(pods) || !text.ends_with(end)) return refused();
  const auto inside = text.substr(pods.size(), text.size() - pods.size() - end.size());
  if (inside.size() <= kUidLength || !inside.substr(kUidLength).starts_with(volumes)) return refused();
  Place place{std::string(inside.substr(0, kUidLength)),
              std::string(inside.substr(kUidLength + volumes.size()))};
  if (!is_uid(place.uid) || !is_volume_name(place.volume)) return refused();
  return place;
}

Result<Directory> SandboxStore::volume_folder(const Place& place) const {
  DROVER_TRY(const auto pods, kubelet_.subdirectory("pods"));
  DROVER_TRY(const auto pod, pods.subdirectory(place.uid));
  DROVER_TRY(const auto volumes, pod.subdirectory("volumes"));
  DROVER_TRY(const auto ours, volumes.subdirectory(kVolumes));
  return ours.subdirectory(place.volume);
}

Result<SandboxStore::Record> SandboxStore::read(const std::string& uid) const {
  DROVER_TRY(const auto text, records_.read(uid));
  DROVER_TRY(const auto value, parse_json(text, fmt::format("The record of sandbox '{}'", uid)));
  Record record{text_at(value, "/id"), text_at(value, "/volume"), text_at(value, "/namespace"),
                text_at(value, "/pod")};
  if (!is_volume_name(record.volume) || !value.contains("ended") || !value["ended"].is_number_integer())
    return fail(ErrorKind::kCorrupt, fmt::format("The record of sandbox '{}' says nothing", uid));
  record.ended = value["ended"].get<std::int64_t>();
  record.unwanted = value.contains("unwanted") && value["unwanted"] == true;
  return record;
}

Status SandboxStore::write(const std::string& uid, const Record& record) const {
  const json value = {{"id", record.id},   {"volume", record.volume}, {"namespace", record.name_space},
                      {"pod", record.pod}, {"ended", record.ended},   {"unwanted", record.unwanted}};
  return records_.write(uid, value.dump(), 0600);
}

Status SandboxStore::publish(const SandboxOrder& order) {
  DROVER_TRY(const auto place, place_of(order.target));
  if (place.uid != order.uid)
    return refuse(fmt::format("'{}' is not a place of pod '{}'", order.target, order.uid));
  const auto owner = read_owner(order.owner);
  if (!order.owner.empty() && !owner)
    return refuse(fmt::format("'{}' is no owner: a uid and a gid, with ':' between", order.owner));
  const std::lock_guard lock(mutex_);
  DROVER_TRY(const auto folder, volume_folder(place));
  Record record{order.volume, place.volume, order.name_space, order.pod};
  if (const auto known = read(order.uid)) {
    if (known->id != order.volume)
      return fail(ErrorKind::kConflict,
                  fmt::format("Pod '{}/{}' has a sandbox already", order.name_space, order.pod));
    record.unwanted = known->unwanted;
  }
  DROVER_CHECK_OK(write(order.uid, record));
  if (folder.exists(kMount)) {
    // It may be half made.
  } else if (kept_.exists(order.uid)) {
    return move(kept_, order.uid.c_str(), folder, kMount);
  } else if (::mkdirat(folder.fd(), kMount, 0700) != 0) {
    return fail_errno(fmt::format("Failed to make '{}'", order.target), errno);
  }
  DROVER_TRY(const auto made, folder.subdirectory(kMount));
  if (owner && ::fchown(made.fd(), owner->first, owner->second) != 0)
    return fail_errno(fmt::format("Failed to give '{}' away", order.target), errno);
  if (::fchmod(made.fd(), 0777) != 0)
    return fail_errno(fmt::format("Failed to open '{}'", order.target), errno);
  return folder.sync();
}

Status SandboxStore::unpublish(const std::string& volume, const std::string& target) {
  DROVER_TRY(const auto place, place_of(target));
  const std::lock_guard lock(mutex_);
  const auto folder = volume_folder(place);
  if (!folder || !folder->exists(kMount)) return {};
  DROVER_CHECK_OK(folder->subdirectory(kMount));  // nothing else is kept
  auto record = read(place.uid).value_or(Record{volume, place.volume});
  if (record.id != volume) return refuse(fmt::format("'{}' is not where volume '{}' is", target, volume));
  if (record.unwanted) {
    DROVER_CHECK_OK(move(*folder, kMount, gone_, place.uid));
    return records_.remove_tree(place.uid);
  }
  if (record.ended == 0) {
    record.ended = std::chrono::duration_cast<std::chrono::seconds>(wall_clock().time_since_epoch()).count();
    DROVER_CHECK_OK(write(place.uid, record));
  }
  return move(*folder, kMount, kept_, place.uid);
}

std::map<std::string, SandboxStore::Record> SandboxStore::records() const {
  std::map<std::string, Record> all;
  if (const auto names = records_.list())
    for (const auto& name : *names)
      if (is_uid(name))
        if (auto record = read(name)) all.emplace(name, std::move(*record));
  return all;
}

std::vector<SandboxInfo> SandboxStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<SandboxInfo> all;
  for (const auto& [uid, record] : records()) {
    const auto size = sizes_.find(uid);
    all.push_back({uid, record.name_space, record.pod, record.ended == 0,
                   size == sizes_.end() ? 0 : size->second.bytes});
  }
  return all;
}

Result<Directory> SandboxStore::find(const std::string& uid, const Record& record) const {
  if (const auto folder = volume_folder({uid, record.volume}))
    if (auto live = folder->subdirectory(kMount)) return live;
  if (auto kept = kept_.subdirectory(uid)) return kept;
  return missing();
}

Result<Directory> SandboxStore::find(const std::string& uid) const {
  if (!is_uid(uid)) return missing();
  const std::lock_guard lock(mutex_);  // it does not move meanwhile
  const auto record = read(uid);
  if (!record || record->unwanted) return missing();
  return find(uid, *record);
}

Result<bool> SandboxStore::is_live(const std::string& uid) const {
  if (!is_uid(uid)) return missing();
  const std::lock_guard lock(mutex_);
  const auto record = read(uid);
  if (!record) return missing();
  return record->ended == 0;
}

Status SandboxStore::remove(const std::string& uid) {
  if (!is_uid(uid)) return refuse(fmt::format("'{}' is no pod's uid", uid));
  const std::lock_guard lock(mutex_);
  auto record = read(uid);
  if (!record) return {};
  if (kept_.exists(uid)) return discard(uid);
  record->unwanted = true;
  return write(uid, *record);
}

/// What takes long is done later, by whoever tidies. With the mutex held.
Status SandboxStore::discard(const std::string& uid) {
  DROVER_CHECK_OK(move(kept_, uid.c_str(), gone_, uid));
  sizes_.erase(uid);
  return records_.remove_tree(uid);
}

Status SandboxStore::empty_gone() const {
  DROVER_TRY(const auto names, gone_.list());
  for (const auto& name : names) DROVER_CHECK_OK(gone_.remove_tree(name));
  return {};
}

bool SandboxStore::is_full() const {
  struct statvfs info{};
  return ::fstatvfs(kept_.fd(), &info) == 0 && info.f_blocks > 0 &&
         info.f_bavail < info.f_blocks / kLeastFreePart;
}

Status SandboxStore::tidy(TimePoint kept_since) {
  std::vector<std::pair<std::int64_t, std::string>> kept;  // the oldest first
  std::map<std::string, Record> all;
  {
    const std::lock_guard lock(mutex_);
    all = records();
    const auto pods = kubelet_.subdirectory("pods");
    DROVER_TRY(const auto names, kept_.list());
    for (const auto& name : names) {
      const auto record = read(name);
      if (record || says_nothing(record.error())) kept.emplace_back(record ? record->ended : 0, name);
    }
    for (const auto& [uid, record] : all) {
      const bool is_kept = kept_.exists(uid);
      // Its volume was never made, or went without us.
      if (!is_kept && pods && !pods->exists(uid)) DROVER_CHECK_OK(records_.remove_tree(uid));
    }
  }
  DROVER_CHECK_OK(empty_gone());
  std::ranges::sort(kept);
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(kept_since.time_since_epoch()).count();
  for (const auto& [ended, uid] : kept) {
    if (ended >= limit && !is_full()) break;
    {
      const std::lock_guard lock(mutex_);
      if (kept_.exists(uid)) DROVER_CHECK_OK(discard(uid));
    }
    DROVER_CHECK_OK(empty_gone());
  }
  return measure(all);
}

Status SandboxStore::measure(const std::map<std::string, Record>& all) {
  for (const auto& [uid, record] : all) {
    {
      const std::lock_guard lock(mutex_);
      if (sizes_[uid].is_final) continue;
    }
    const auto folder = find(uid);
    const auto bytes = folder ? disk_space_below(*folder) : Failure(folder.error());
    const std::lock_guard lock(mutex_);
    if (bytes) sizes_[uid] = {*bytes, record.ended != 0};
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(sizes_, [&](const auto& entry) { return !records_.exists(entry.first); });
  return {};
}

}  // namespace drover::kube
