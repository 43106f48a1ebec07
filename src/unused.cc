#include "unused.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "container/mount_table.h"
#include "container/task_folder.h"

namespace drover {
namespace {

/// So long an image stays that somebody has pulled for what he is about to run.
constexpr std::chrono::minutes kKeepUnused{10};
constexpr std::size_t kMostNamesTold = 5;

/// What containers are made of that are being started: they may not have mounted it yet.
std::vector<std::string> bundles(const std::string& state) {
  std::vector<std::string> texts;
  const auto tasks = Directory::open(state + "/tasks");
  if (!tasks) return texts;
  for (const auto& name : tasks->list().value_or(std::vector<std::string>{}))
    if (auto text = tasks->read(fmt::format("{}/{}/{}", name, container::kBundle, container::kConfiguration)))
      texts.push_back(*std::move(text));
  return texts;
}

driver::RemovedVolumes remove_volumes(const UnusedPlaces& places, std::uint64_t bytes) {
  std::optional<MountedFolders> mounted;
  std::vector<std::string> starting;
  const auto is_used = [&](const std::string& name) {
    if (!mounted) {
      starting = bundles(places.state);  // first: what has started meanwhile is mounted
      mounted.emplace();
    }
    const auto named = fmt::format("/{}\"", name);
    return mounted->contains(name) || std::ranges::any_of(starting, [&](const std::string& text) {
             return text.find(named) != std::string::npos;
           });
  };
  auto removed = places.hardware.remove_old_volumes(bytes, is_used);
  if (removed) return *std::move(removed);
  spdlog::warn("{}", to_string(context(removed.error(), "Failed to remove old driver volumes")));
  return {};
}

std::string what_went(const image::Pruned& images, const driver::RemovedVolumes& volumes) {
  auto names = images.names;
  names.insert(names.end(), volumes.names.begin(), volumes.names.end());
  const auto more = names.size() - std::min(names.size(), kMostNamesTold);
  names.resize(names.size() - more);
  auto words = fmt::format("{} images, {} layers and {} driver volumes", images.names.size(), images.layers,
                           volumes.names.size());
  if (!names.empty()) words += fmt::format(" ('{}'", fmt::join(names, "', '"));
  if (more > 0) words += fmt::format(" and {} more", more);
  if (!names.empty()) words += ")";
  return words;
}

}  // namespace

MountedFolders::MountedFolders() {
  std::set<std::string> spaces;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto process = entry.path().string();
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string().front())) == 0) continue;
    std::error_code gone;
    const auto space = std::filesystem::read_symlink(process + "/ns/mnt", gone);
    if (gone || !spaces.insert(space.string()).second) continue;
    const auto table = read_file(process + "/mountinfo");
    if (!table) {
      spaces.erase(space.string());  // it has ended; another one may still show the same
      continue;
    }
    for (const auto& mount : container::parse_mount_table(*table))
      names_.insert(mount.root.substr(mount.root.rfind('/') + 1));
  }
}

void free_unused(const UnusedPlaces& places, std::uint64_t bytes, const std::set<image::NameOfUser>& named) {
  const auto volumes = remove_volumes(places, bytes);
  image::Pruned pruned;
  if (volumes.bytes < bytes) {
    auto freed = places.images.make_room({bytes - volumes.bytes, named, wall_clock() - kKeepUnused});
    if (!freed)
      spdlog::warn("{}", to_string(context(freed.error(), "Failed to remove images that nobody uses")));
    else
      pruned = *std::move(freed);
  }
  if (volumes.bytes + pruned.bytes == 0) return;
  spdlog::warn("The disk of the state folder has too little room: {} were removed that nobody uses, {}",
               format_bytes(volumes.bytes + pruned.bytes), what_went(pruned, volumes));
}

}  // namespace drover
