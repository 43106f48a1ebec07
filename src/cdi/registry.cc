#include "cdi/registry.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <set>

#include "base/files.h"
#include "cdi/decode.h"

namespace drover::cdi {
namespace {

constexpr std::size_t kMostFiles = 1000;  // of a folder
constexpr std::size_t kMostNamesShown = 20;

bool is_specification(const std::string& name) {
  return !name.starts_with('.') && (name.ends_with(".json") || name.ends_with(".yaml"));
}

/// What tells one state of the files from another: whoever writes into one changes its times or its size.
/// None when one was written just now: the next who writes into it may find the clock of the file system
/// where it was.
std::optional<std::string> fingerprint_of(const std::vector<std::string>& folders) {
  const auto just_now = ::time(nullptr) - 2;
  std::string fingerprint;
  bool settled = true;
  for (const auto& folder : folders) {
    const auto directory = Directory::open(folder);
    if (!directory) continue;
    for (const auto& name : directory->list().value_or(std::vector<std::string>{})) {
      if (!is_specification(name)) continue;
      struct stat info{};
      const auto path = folder + "/" + name;
      if (::stat(path.c_str(), &info) != 0) info = {};
      settled &= info.st_mtim.tv_sec < just_now;
      fingerprint +=
          fmt::format("{} {} {} {} {}.{} {}.{}\n", path, info.st_dev, info.st_ino, info.st_size,
                      info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    }
  }
  return settled ? std::optional(std::move(fingerprint)) : std::nullopt;
}

std::string shown_names(const std::map<DeviceName, Registry::Entry>& devices) {
  if (devices.empty()) return "no CDI device is installed on this machine";
  std::vector<std::string> names;
  for (const auto& [name, entry] : devices)
    if (names.size() < kMostNamesShown) names.push_back(to_string(name));
  const auto more = devices.size() - names.size();
  return fmt::format("there are {}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more: see 'drover cdi list'", more) : "");
}

}  // namespace

Registry Registry::read(const std::vector<std::string>& folders) {
  Registry registry;
  for (const auto& folder : folders) registry.read_folder(folder);
  std::ranges::sort(registry.problems_, {}, &Error::message);
  return registry;
}

void Registry::read_folder(const std::string& folder) {
  const auto directory = Directory::open(folder);
  if (!directory) {
    if (directory.error().kind != ErrorKind::kNotFound) problems_.push_back(directory.error());
    return;
  }
  std::map<DeviceName, Entry> found;
  std::size_t count = 0;
  for (const auto& name : directory->list().value_or(std::vector<std::string>{})) {
    if (!is_specification(name)) continue;
    const auto path = folder + "/" + name;
    if (++count > kMostFiles) {
      problems_.push_back({ErrorKind::kExhausted, fmt::format("'{}' has too many files", folder), "", path});
      break;
    }
    // By its path: operators link these files.
    auto specification = read_file(path, kMaxSpecificationBytes).and_then([&](const std::string& text) {
      return decode_specification(text, fmt::format("'{}'", path));
    });
    if (!specification) {
      problems_.push_back(specification.error());
      continue;
    }
    for (const auto& device : specification->devices) {
      const auto [entry, is_new] = found.try_emplace({specification->kind, device.name}, Entry{path, {}});
      if (!is_new) entry->second.conflicts.push_back(path);
    }
    files_.emplace(path, std::move(*specification));
  }
  for (auto& [name, entry] : found) devices_[name] = std::move(entry);
}

Result<Edits> Registry::device_edits(const DeviceName& name) const {
  const auto found = devices_.find(name);
  if (found == devices_.end())
    return fail(ErrorKind::kNotFound, fmt::format("There is no CDI device '{}'", to_string(name)),
                shown_names(devices_));
  if (!found->second.conflicts.empty())
    return fail(ErrorKind::kConflict,
                fmt::format("The CDI device '{}' is told of by both '{}' and '{}'", to_string(name),
                            found->second.file, fmt::join(found->second.conflicts, "', '")),
                "remove one of the files");
  const auto& devices = files_.at(found->second.file).devices;
  return std::ranges::find(devices, name.name, &Device::name)->edits;
}

Result<Edits> Registry::edits_of(const std::vector<DeviceName>& names) const {
  Edits edits;
  std::set<DeviceName> done;
  std::set<std::string> files;
  for (const auto& name : names) {
    if (!done.insert(name).second) continue;
    DROVER_TRY(const auto own, device_edits(name));
    const auto& file = devices_.at(name).file;
    if (files.insert(file).second) edits.append(files_.at(file).edits);
    edits.append(own);
  }
  return edits;
}

std::shared_ptr<const Registry> KeptRegistry::registry() {
  const std::lock_guard lock(mutex_);
  return registry_ && Clock::now() < refreshed_at_ + freshness_ ? registry_ : refresh();
}

std::shared_ptr<const Registry> KeptRegistry::refresh() {
  refreshed_at_ = Clock::now();
  // Before they are read: what is written meanwhile is seen the next time.
  auto fingerprint = fingerprint_of(folders_);
  if (!registry_ || !fingerprint || fingerprint != seen_) {
    registry_ = std::make_shared<const Registry>(Registry::read(folders_));
    seen_ = std::move(fingerprint);
  }
  return registry_;
}

Result<Edits> KeptRegistry::edits_of(const std::vector<DeviceName>& names) {
  if (auto edits = registry()->edits_of(names)) return edits;
  const std::lock_guard lock(mutex_);
  return refresh()->edits_of(names);
}

Status complete_device_nodes(Edits& edits) {
  for (auto& node : edits.device_nodes) {
    if (!node.type.empty() && (node.type == "p" || (node.major && node.minor))) continue;
    const auto& path = node.host_path.empty() ? node.path : node.host_path;
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0)
      return fail_errno(fmt::format("Failed to look at the device '{}'", path), errno);
    const auto* type = S_ISCHR(info.st_mode)    ? "c"
                       : S_ISBLK(info.st_mode)  ? "b"
                       : S_ISFIFO(info.st_mode) ? "p"
                                                : "";
    if (*type == '\0' || (!node.type.empty() && node.type != type && node.type != "u"))
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is not the device that it should be", path));
    node.type = type;
    node.major = ::major(info.st_rdev);
    node.minor = ::minor(info.st_rdev);
    if (!node.file_mode) node.file_mode = info.st_mode & 07777U;
  }
  return {};
}

}  // namespace drover::cdi
