#pragma once

// Which files make up NVIDIA's driver, by name. Pure.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::driver {

/// Programs of the driver that containers get.
const std::vector<std::string>& program_names();

/// Whether a library of this file name ("libcuda.so.1") belongs to the driver.
bool is_driver_library(std::string_view name);

/// OpenGL entry points ("libGL.so.1") that come from NVIDIA, from the vendor-neutral dispatcher or from Mesa:
/// only what the file needs tells.
bool is_ambiguous_library(std::string_view name);

/// Where distributions keep libraries, whatever the architecture. `list` gives the names in a folder.
std::vector<std::string> library_folders(
    const std::function<std::vector<std::string>(const std::string& folder)>& list);

/// The driver's version that a file name ends in ("libcuda.so.390.30"): "" when it says none. Numbers below
/// 100 are interface versions ("libcuda.so.1", "libnvidia-egl-wayland.so.1.1.11").
std::string version_in(std::string_view name);

/// Whether `name` is `library` ("libcuda.so") with or without a version behind it.
bool names_library(std::string_view name, std::string_view library);

}  // namespace drover::driver
