#pragma once

// What the kernel's own file systems tell and let change, and no container should see or touch: all that
// Docker or Podman hide. Thread safe.

#include <string>
#include <vector>

namespace drover::container {

/// The folders of `cpus` in which processors count how often they got too hot: from that one can tell what
/// others compute. Absolute and sorted; empty where there are none.
std::vector<std::string> thermal_folders(const std::string& cpus = "/sys/devices/system/cpu");

/// Empty in every container. A runtime passes over what the machine does not have.
std::vector<std::string> masked_paths(const std::vector<std::string>& thermal_folders);

/// What to cover so that tasks do not see the daemon's socket: the folder of it, which also hides the socket
/// that a restarted daemon makes there; or the socket itself, where other files are in that folder.
std::string place_to_hide(const std::string& socket);

/// There, but nobody writes, not even root.
std::vector<std::string> read_only_paths();

}  // namespace drover::container
