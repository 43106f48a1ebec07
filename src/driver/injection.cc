#include "driver/injection.h"

#include <algorithm>
#include <ranges>
#include <string_view>

namespace drover::driver {
namespace {

constexpr const char* kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The last one counts, as for every program that reads its environment; "" when there is none.
std::string value_of(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : std::ranges::reverse_view(environment))
    if (key == name) return value;
  return "";
}

bool has_folder(std::string_view path, std::string_view folder) {
  return std::ranges::any_of(std::views::split(path, ':'), [&](const auto& part) {
    return std::string_view(part.begin(), part.end()) == folder;
  });
}

std::string with_folders(std::string path, const std::vector<const char*>& folders) {
  for (const auto* folder : folders) {
    if (has_folder(path, folder)) continue;
    if (!path.empty()) path += ':';
    path += folder;
  }
  return path;
}

}  // namespace

bool wants_volume(const Environment& environment, const std::map<std::string, std::string>& labels) {
  const auto visible =
      std::ranges::find(environment, "NVIDIA_VISIBLE_DEVICES", &Environment::value_type::first);
  if (visible != environment.end()) return !visible->second.empty() && visible->second != "void";
  return labels.contains("com.nvidia.volumes.needed");
}

std::map<std::string, std::string> volume_environment(const Environment& environment, bool compat,
                                                      bool first) {
  std::vector<const char*> libraries{"/usr/local/nvidia/lib", "/usr/local/nvidia/lib64"};
  if (compat) libraries.insert(libraries.begin(), "/usr/local/cuda/compat");
  const auto path = value_of(environment, "PATH");
  const auto named = value_of(environment, "LD_LIBRARY_PATH");
  const auto all =
      first && !named.empty() ? with_folders("", libraries) + ":" + named : with_folders(named, libraries);
  return {{"PATH", with_folders(path.empty() ? kUsualPath : path, {"/usr/local/nvidia/bin"})},
          {"LD_LIBRARY_PATH", all}};
}

}  // namespace drover::driver
