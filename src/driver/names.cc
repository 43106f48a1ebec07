#include "driver/names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace drover::driver {
namespace {

// Those of Mesos, and what later drivers added.
constexpr std::array kLibraries = {
    // management
    "libnvidia-ml.so", "libnvidia-cfg.so", "libnvidia-nscq.so", "libnvidia-sandboxutils.so",
    // computing
    "libcuda.so", "libcudadebugger.so", "libnvidia-opencl.so", "libnvidia-gpucomp.so",
    "libnvidia-ptxjitcompiler.so", "libnvidia-fatbinaryloader.so", "libnvidia-compiler.so",
    "libnvidia-nvvm.so", "libnvidia-nvvm70.so", "libnvidia-allocator.so", "libnvidia-pkcs11.so",
    "libnvidia-pkcs11-openssl3.so", "libnvidia-tileiras.so",
    // video
    "libvdpau_nvidia.so", "libnvidia-encode.so", "libnvidia-opticalflow.so", "libnvcuvid.so",
    // graphics
    "libnvidia-eglcore.so", "libnvidia-glcore.so", "libnvidia-tls.so", "libnvidia-glsi.so",
    "libnvidia-fbc.so", "libnvidia-ifr.so", "libnvidia-rtcore.so", "libnvoptix.so", "libnvidia-glvkspirv.so",
    "libnvidia-cbl.so", "libnvidia-ngx.so",
    // behind the vendor-neutral dispatcher
    "libGLX_nvidia.so", "libEGL_nvidia.so", "libGLESv2_nvidia.so", "libGLESv1_CM_nvidia.so"};

constexpr std::array kAmbiguous = {"libGL.so", "libEGL.so", "libGLESv1_CM.so", "libGLESv2.so"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return names_library(name, each); });
}

}  // namespace

const std::vector<std::string>& program_names() {
  static const std::vector<std::string> names = {"nvidia-cuda-mps-control", "nvidia-cuda-mps-server",
                                                 "nvidia-debugdump", "nvidia-persistenced", "nvidia-smi"};
  return names;
}

bool names_library(std::string_view name, std::string_view library) {
  return name.starts_with(library) && (name.size() == library.size() || name[library.size()] == '.');
}

bool is_driver_library(std::string_view name) {
  return contains(kLibraries, name) || is_ambiguous_library(name);
}

bool is_ambiguous_library(std::string_view name) {
  return contains(kAmbiguous, name);
}

std::vector<std::string> library_folders(
    const std::function<std::vector<std::string>(const std::string& folder)>& list) {
  std::vector<std::string> bases;
  for (const auto* parent : {"/usr/lib", "/lib"})
    for (const auto& name : list(parent))
      if (name.find("-linux-gnu") != std::string::npos) bases.push_back(std::string(parent) + "/" + name);
  for (const auto* base : {"/usr/lib64", "/lib64", "/usr/lib", "/lib", "/usr/lib32", "/lib32",
                           "/usr/local/lib64", "/usr/local/lib"})
    bases.emplace_back(base);
  std::vector<std::string> folders;
  for (const auto& base : bases)
    for (const auto* below : {"", "/nvidia", "/nvidia/current", "/tls", "/vdpau"})
      folders.push_back(base + below);
  return folders;
}

std::string version_in(std::string_view name) {
  constexpr std::string_view kSeparator = ".so.";
  const auto start = name.find(kSeparator);
  if (start == std::string_view::npos) return "";
  const auto version = name.substr(start + kSeparator.size());
  const bool numeric = std::all_of(version.begin(), version.end(),
                                   [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
  const auto first = version.find('.');
  return numeric && first != std::string_view::npos && first >= 3 ? std::string(version) : "";
}

}  // namespace drover::driver
