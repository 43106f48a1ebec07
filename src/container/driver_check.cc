#include "container/driver_check.h"

#include <fmt/format.h>

#include <ranges>
#include <set>

#include "container/environment.h"
#include "driver/files.h"
#include "driver/names.h"

namespace drover::container {
namespace {

constexpr std::size_t kMostFolders = 256;
constexpr const char* kCudaParent = "/usr/local";

bool is_core_library(std::string_view name) {
  return (driver::names_library(name, "libcuda.so") || driver::names_library(name, "libnvidia-ml.so")) &&
         !driver::version_in(name).empty();
}

class Search {
 public:
  explicit Search(const FolderLister& list) : list_(list) {}

  /// Adds the libraries of a folder that was not looked at before. Empty files are what container engines
  /// leave behind where they mounted a driver while the image was made.
  Status add(const std::string& folder, std::vector<driver::CarriedLibrary>& found) {
    if (visited_.size() >= kMostFolders || !visited_.insert(folder).second) return {};
    DROVER_TRY(const auto entries, list_(folder, is_core_library));
    for (const auto& entry : entries)
      if (entry.kind == image::MergedEntry::Kind::kFile && entry.size > 0)
        found.push_back({folder + "/" + entry.name, driver::version_in(entry.name)});
    return {};
  }

  Result<std::vector<std::string>> folders_in(const std::string& parent,
                                              const std::function<bool(std::string_view)>& wanted) const {
    DROVER_TRY(const auto entries, list_(parent, wanted));
    std::vector<std::string> names;
    for (const auto& entry : entries)
      if (entry.kind == image::MergedEntry::Kind::kFolder) names.push_back(entry.name);
    return names;
  }

 private:
  const FolderLister& list_;
  std::set<std::string> visited_;
};

/// The folders that the image names itself: absolute, and not those of the compatibility package.
std::vector<std::string> named_folders(const driver::Environment& environment) {
  std::vector<std::string> folders;
  for (const auto& [name, value] : environment) {
    if (name != "LD_LIBRARY_PATH") continue;
    folders.clear();
    for (const auto& part : std::views::split(value, ':'))
      if (std::string folder(part.begin(), part.end());
          folder.starts_with('/') && folder.find("/compat") == std::string::npos)
        folders.push_back(std::move(folder));
  }
  return folders;
}

Status find_carried(Search& search, driver::ImageFacts& facts, bool mounted_over) {
  for (const auto& folder : named_folders(facts.environment)) {
    const bool hidden = mounted_over && folder.starts_with(driver::kContainerFolder);
    if (!hidden) DROVER_CHECK_OK(search.add(folder, facts.carried));
  }
  Status listed;
  const auto usual = driver::library_folders([&](const std::string& parent) {
    auto names = search.folders_in(
        parent, [](std::string_view name) { return name.find("-linux-gnu") != std::string_view::npos; });
    if (!names) listed = Failure(names.error());
    return std::move(names).value_or(std::vector<std::string>{});
  });
  DROVER_CHECK_OK(listed);
  for (const auto& folder : usual) DROVER_CHECK_OK(search.add(folder, facts.carried));
  if (mounted_over) return {};
  for (const auto* below : {"/lib64", "/lib"})
    DROVER_CHECK_OK(search.add(driver::kContainerFolder + std::string(below), facts.carried));
  return {};
}

/// /usr/local/cuda is a link to the folder of a version. Some images keep the libraries one folder deeper,
/// and link to them when the program starts.
Status find_compat(Search& search, driver::ImageFacts& facts) {
  DROVER_TRY(const auto toolkits, search.folders_in(kCudaParent, [](std::string_view name) {
    return name == "cuda" || name.starts_with("cuda-");
  }));
  for (const auto& toolkit : toolkits)
    for (const auto* below : {"/compat", "/compat/lib", "/compat/lib.real"})
      DROVER_CHECK_OK(search.add(std::string(kCudaParent) + "/" + toolkit + below, facts.compat));
  return {};
}

}  // namespace

Result<driver::ImageFacts> driver_facts(const Launch& launch, const image::Image& image,
                                        const FolderLister& list) {
  driver::ImageFacts facts;
  facts.environment = image.config.environment;
  facts.environment.insert(facts.environment.end(), launch.task.environment.begin(),
                           launch.task.environment.end());
  facts.immutable = launch.task.driver == workload::DriverSource::kNone;
  const FolderLister in_layers = [&](const auto& folder, const auto& wanted) {
    return image::list_merged(image.layers, folder, wanted);
  };
  Search search(list ? list : in_layers);
  DROVER_CHECK_OK(find_compat(search, facts));
  DROVER_CHECK_OK(find_carried(search, facts, gets_driver_volume(launch, &image)));
  return facts;
}

Result<bool> check_driver(const Launch& launch, const image::Image& image, const FolderLister& list) {
  if (launch.machine.devices.empty()) return true;
  DROVER_TRY(const auto facts, driver_facts(launch, image, list));
  if (const auto matched = driver::match(launch.machine, facts); !matched)
    return Failure(context(matched.error(), "Image '" + image.reference + "' does not work here"));
  const bool compat = driver::uses_compat(launch.machine, facts.compat);
  if (compat && is_guarded(launch, &image))
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("Image '{}' needs its own libcuda, of CUDA's compatibility package, before which no "
                    "guard can stand",
                    image.reference),
        "use an image of the machine's CUDA, whole GPUs, or a share that nothing enforces: --share-by none");
  return compat;
}

}  // namespace drover::container
