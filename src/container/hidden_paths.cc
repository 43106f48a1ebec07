#include "container/hidden_paths.h"

#include <algorithm>
#include <filesystem>

namespace drover::container {

std::vector<std::string> thermal_folders(const std::string& cpus) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(cpus, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto folder = entry->path() / "thermal_throttle";
    std::error_code absent;
    if (std::filesystem::is_directory(folder, absent)) found.push_back(folder.string());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> masked_paths(const std::vector<std::string>& thermal_folders) {
  std::vector<std::string> paths = {"/proc/acpi",        "/proc/asound",   "/proc/interrupts",
                                    "/proc/kcore",       "/proc/keys",     "/proc/latency_stats",
                                    "/proc/sched_debug", "/proc/scsi",     "/proc/timer_list",
                                    "/proc/timer_stats", "/sys/dev/block", "/sys/devices/virtual/powercap",
                                    "/sys/firmware",     "/sys/fs/selinux"};
  paths.insert(paths.end(), thermal_folders.begin(), thermal_folders.end());
  return paths;
}

std::string place_to_hide(const std::string& socket) {
  const std::filesystem::path path(socket);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path.parent_path(), error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename() != path.filename()) return socket;
  return error ? socket : path.parent_path().string();
}

std::vector<std::string> read_only_paths() {
  return {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
}

}  // namespace drover::container
