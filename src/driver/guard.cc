#include "driver/guard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/files.h"

namespace drover::driver {
namespace {

struct Covered {
  std::string_view name;
  std::string_view needed;
};
constexpr std::array kCovered = {Covered{"libcuda.so.1", "libdrover-driver-cuda.so.1"},
                                 Covered{"libnvidia-ml.so.1", "libdrover-driver-ml.so.1"}};

/// Where a driver volume has libraries of 64 bits, which are those that there is a guard for.
const std::string kWide = "lib64/";

Failure not_guarded(const std::string& name, const std::string& version) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("driver {} has no '{}' that the guard could stand before", version, name),
              "reinstall the driver, or ask for a share that nothing enforces: --share-by none");
}

/// The indices of those that the library's name leads to, in whichever folder; one at least.
Result<std::vector<std::size_t>> covered_files(const HostFiles& files, const GuardLibrary& library) {
  std::vector<std::size_t> covered;
  for (const auto& link : files.links) {
    if (!link.path.ends_with("/" + library.name)) continue;
    const auto place = link.path.substr(0, link.path.size() - library.name.size()) + link.target;
    const auto file = std::ranges::find(files.files, place, &HostFile::destination);
    if (file != files.files.end()) covered.push_back(static_cast<std::size_t>(file - files.files.begin()));
  }
  if (covered.empty()) return not_guarded(library.name, files.version);
  return covered;
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
  return fail(
      ErrorKind::kNotFound,
      fmt::format("the libraries that hold programs to their share are not in '{}/lib/drover/guard'", parent),
      "install Drover with all of its files");
}

Result<HostFiles> guarded(HostFiles files, const Guard& guard) {
  for (const auto& library : guard) {
    DROVER_TRY(const auto covered, covered_files(files, library));
    const auto real = files.files[covered.front()].source;
    for (const auto index : covered) files.files[index].source = library.source;
    files.files.push_back({real, fmt::format("{}/{}{}", kContainerFolder, kBehindGuard, library.needed)});
  }
  std::ranges::sort(files.files, {}, &HostFile::destination);
  return files;
}

Result<std::vector<HostFile>> guard_on_host(const HostFiles& files, const Guard& guard) {
  std::vector<HostFile> covers;
  for (const auto& library : guard) {
    DROVER_TRY(const auto covered, covered_files(files, library));
    const auto source = [&](std::size_t index) { return files.files[index].source; };
    covers.push_back({source(covered.front()), fmt::format("{}/{}", kGuardOnHost, library.needed)});
    std::set<std::string> places;
    for (const auto index : covered) places.insert(source(index));
    for (const auto& place : places) covers.push_back({library.source, place});
  }
  return covers;
}

Result<std::map<std::string, GuardLibrary>> guarded_places(const DriverFiles& files, const Guard& guard) {
  std::map<std::string, GuardLibrary> places;
  for (const auto& library : guard) {
    const auto link = std::ranges::find(files.links, kWide + library.name, &DriverLink::path);
    const auto place = link == files.links.end() ? "" : kWide + link->target;
    if (std::ranges::find(files.files, place, &DriverFile::destination) == files.files.end())
      return not_guarded(library.name, files.version);
    places[place] = library;
  }
  return places;
}

}  // namespace drover::driver
