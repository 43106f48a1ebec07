#include "driver/guard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files.h"

namespace drover::driver {
namespace {

struct Covered {
  std::string_view name;
  std::string_view needed;
};
constexpr std::array kCovered = {Covered{"libcuda.so.1", "libdrover-driver-cuda.so.1"},
                                 Covered{"libnvidia-ml.so.1", "libdrover-driver-ml.so.1"}};

Failure not_guarded(const std::string& name, const std::string& version) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("driver {} has no '{}' that the guard could stand before", version, name),
              "reinstall the driver, or ask for a share that nothing enforces: --share-by none");
}

/// "/usr/lib64/libcuda.so.1" -> "/usr/lib64/"
std::string folder_before(const std::string& path, const std::string& name) {
  return path.substr(0, path.size() - name.size());
}

/// "libcuda.so.1" -> "libcuda.so": what the compiler's linker looks for.
std::string linked_as(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

}  // namespace

Result<Guard> find_guard() {
  DROVER_TRY(const auto here, executable_directory());
  const auto parent = std::filesystem::path(here).parent_path().string();
  Guard guard;
  for (const auto& covered : kCovered)
    for (const auto& prefix : {here, parent}) {
      auto source = fmt::format("{}/lib/drover/guard/{}", prefix, covered.name);
      if (::access(source.c_str(), R_OK) != 0) continue;
      guard.push_back({std::move(source), std::string(covered.name), std::string(covered.needed)});
      break;
    }
  if (guard.size() == kCovered.size()) return guard;
  return fail(ErrorKind::kNotFound,
              fmt::format("the libraries that hold programs to their share are not in '{}/lib/drover/guard'", parent),
              "install Drover with all of its files");
}

Result<HostFiles> guarded(HostFiles files, const Guard& guard) {
  for (const auto& library : guard) {
    bool found = false;
    for (auto& link : files.links) {
      if (!link.path.ends_with("/" + library.name) || link.target == library.name) continue;
      found = true;
      const auto folder = folder_before(link.path, library.name);
      for (auto& other : files.links)
        if (other.path == folder + linked_as(library.name)) other.target = library.name;
      files.files.push_back({library.source, link.path});
      link.path = folder + library.needed;
    }
    if (!found) return not_guarded(library.name, files.version);
  }
  std::ranges::sort(files.links, {}, &HostLink::path);
  std::ranges::sort(files.files, {}, &HostFile::destination);
  return files;
}

Result<std::vector<DriverLink>> guarded_links(const DriverFiles& files, const Guard& guard) {
  auto links = files.links;
  std::erase_if(links, [](const DriverLink& link) { return !link.path.starts_with(kGuardedFolder); });
  for (const auto& library : guard) {
    const auto link = std::ranges::find(links, kGuardedFolder + library.name, &DriverLink::path);
    if (link == links.end()) return not_guarded(library.name, files.version);
    for (auto& other : links)
      if (other.path == kGuardedFolder + linked_as(library.name)) other.target = library.name;
    link->path = kGuardedFolder + library.needed;
  }
  std::ranges::sort(links, {}, &DriverLink::path);
  return links;
}

}  // namespace drover::driver
