#include "driver/host_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "base/files.h"
#include "driver/elf.h"
#include "driver/files.h"
#include "driver/names.h"
#include "driver/programs.h"
#include "driver/root.h"

namespace drover::driver {
namespace {

// Searched below /etc and the folders of shared data, and shown where they are found.
constexpr std::array kDescriptions = {"glvnd/egl_vendor.d/10_nvidia.json",
                                      "egl/egl_external_platform.d/15_nvidia_gbm.json",
                                      "egl/egl_external_platform.d/10_nvidia_wayland.json",
                                      "nvidia/nvoptix.bin",
                                      "X11/xorg.conf.d/10-nvidia.conf",
                                      "X11/xorg.conf.d/nvidia-drm-outputclass.conf"};
// Searched in the same places, and shown below /etc.
constexpr std::array kVulkan = {"vulkan/icd.d/nvidia_icd.json", "vulkan/icd.d/nvidia_layers.json",
                                "vulkan/implicit_layer.d/nvidia_layers.json",
                                "vulkan/icd.d/nvidia_icd.x86_64.json",
                                "vulkan/icd.d/nvidia_icd.aarch64.json"};
constexpr std::array kDataFolders = {"/etc", "/usr/local/share", "/usr/share"};
// In images whose /lib64 is a link, a library finds what is beside it below /usr.
constexpr std::array kDataRoots = {"/", "/usr/"};
constexpr std::array kSockets = {"/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket"};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
std::string parent_folder(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

/// "libnvidia-egl-gbm.so.1.1.0": these have versions of their own.
bool has_own_version(std::string_view name, std::string_view library) {
  if (!name.starts_with(library) || name.size() <= library.size() || name[library.size()] != '.')
    return false;
  return name.substr(library.size() + 1).find('.') != std::string_view::npos;
}

bool is_wanted(const std::string& name, const std::string& version) {
  if (name.ends_with(".so." + version)) return !name.starts_with("libglxserver_nvidia.so");
  return has_own_version(name, "libnvidia-egl-gbm.so") || has_own_version(name, "libnvidia-egl-wayland.so") ||
         (name.starts_with("libnvidia-nvvm70.so.") && name.size() > 20);
}

class HostFinder {
 public:
  HostFinder(const Root& root, const HostFilesOptions& options)
      : root_(root),
        options_(options),
        prefix_(options.host_root.empty() ? options.root : options.host_root) {
    while (prefix_.ends_with('/')) prefix_.pop_back();
  }

  Result<HostFiles> find() {
    // The volume's finder knows how to tell the version, and that a driver is there at all.
    DROVER_TRY(auto driver, driver::find({.root = options_.root, .version = options_.version}));
    found_.version = driver.version;
    for (const auto& library : native_libraries(driver)) add_library(library);
    add_x_server();
    add_programs();
    add_firmware();
    add_descriptions();
    add_sockets();
    std::vector<std::string> roots(kDataRoots.begin(), kDataRoots.end());
    if (options_.guarded) roots.push_back(fmt::format("{}/", kContainerFolder));
    for (const auto& root : roots) add_data_below(root);
    return result();
  }

 private:
  /// By their real paths. Those of 32 bits are left out, as the vendor's generator does.
  std::set<std::string> native_libraries(const DriverFiles& driver) {
    std::optional<std::uint16_t> machine;
    for (const auto& file : driver.files) {
      if (!file.destination.starts_with("lib64/")) continue;
      library_folders_.insert(parent_folder(file.source));
      if (machine) continue;
      if (const auto known = elf_of(file.source)) machine = known->machine;
    }
    std::set<std::string> candidates;
    for (const auto& folder : library_folders([&](const auto& parent) { return root_.list(parent); }))
      for (const auto& name : root_.list(folder))
        if (is_wanted(name, found_.version)) candidates.insert(folder + "/" + name);
    for (const auto& folder : library_folders_)
      for (const auto* below : {"", "/vdpau"})
        for (const auto& name : root_.list(folder + below))
          if (is_wanted(name, found_.version)) candidates.insert(folder + below + "/" + name);
    std::set<std::string> real;
    for (const auto& candidate : candidates) {
      const auto file = root_.open_file(candidate);
      if (!file || !is_wanted(base_name(file->path), found_.version)) continue;
      const auto elf = read_elf(file->fd.get(), candidate);
      if (!elf || elf->elf_class != ElfClass::k64 || elf->machine != machine) continue;
      real.insert(file->path);
      sonames_[file->path] = elf->soname;
    }
    return real;
  }

  std::optional<ElfFile> elf_of(const std::string& path) const {
    const auto file = root_.open_file(path);
    const auto elf = file ? read_elf(file->fd.get(), path) : tl::make_unexpected(file.error());
    return elf ? std::optional(*elf) : std::nullopt;
  }

  void add_library(const std::string& path) {
    if (!add(path, path)) return;
    const auto name = base_name(path);
    const auto folder = parent_folder(path);
    const auto is = [&](std::string_view library) { return names_library(name, library); };
    const auto& soname = sonames_[path];
    const auto loaded_as = soname.empty() || soname.find('/') != std::string::npos ? name : soname;
    if (loaded_as != name) link(folder, loaded_as, name);
    // What the compiler's linker looks for: where the host has it.
    const auto linked_as = loaded_as.substr(0, loaded_as.find(".so") + 3);
    if (linked_as != loaded_as && root_.is_link(folder + "/" + linked_as)) link(folder, linked_as, loaded_as);
    // What programs look for though no library is called so.
    if (is("libcuda.so")) link(folder, "libcuda.so", "libcuda.so.1");
    if (is("libnvidia-opticalflow.so"))
      link(folder, "libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1");
    if (is("libGLX_nvidia.so")) link(folder, "libGLX_indirect.so.0", name);
    if (is("libnvidia-vulkan-producer.so")) link(folder, "libnvidia-vulkan-producer.so", name);
    if (is("libnvidia-allocator.so"))
      links_.try_emplace(folder + "/gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1");
    loaded_.insert(folder + "/" + loaded_as);
  }

  void link(const std::string& folder, const std::string& name, const std::string& target) {
    links_.try_emplace(folder + "/" + name, target);
    if (name.starts_with("libcuda") || name.starts_with("libGLX_indirect") ||
        name.starts_with("libnvidia-optical"))
      loaded_.insert(folder + "/" + name);
  }

  /// The parts of an X server: in the first folder that has them.
  void add_x_server() {
    std::vector<std::string> folders;
    for (const auto& library : loaded_)
      if (base_name(library) == "libcuda.so.1") {
        folders.push_back(parent_folder(library) + "/nvidia/xorg");
        for (const auto* below : {"drivers", "extensions", "updates/drivers", "updates/extensions"})
          folders.push_back(parent_folder(library) + "/xorg/modules/" + below);
      }
    for (const auto* base : {"/usr/lib/xorg", "/usr/lib64/xorg", "/usr/X11R6/lib", "/usr/X11R6/lib64"})
      for (const auto* below : {"drivers", "extensions", "updates/drivers", "updates/extensions"})
        folders.push_back(fmt::format("{}/modules/{}", base, below));
    const auto server = "libglxserver_nvidia.so." + found_.version;
    for (const auto& name : {std::string("nvidia_drv.so"), server})
      for (const auto& folder : folders)
        if (const auto file = root_.open_file(folder + "/" + name)) {
          add(file->path, file->path);
          if (name == server)
            links_.try_emplace(parent_folder(file->path) + "/libglxserver_nvidia.so", server);
          break;
        }
  }

  void add_programs() {
    for (const auto* name :
         {"nvidia-smi", "nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control",
          "nvidia-cuda-mps-server", "nvidia-imex", "nvidia-imex-ctl"})
      if (const auto program = find_program(root_, name, library_folders_)) add(program->file, program->path);
  }

  void add_firmware() {
    for (const auto& base : {options_.firmware_folder, "/lib/firmware/updates/" + options_.kernel_release,
                             std::string("/lib/firmware/updates"), "/lib/firmware/" + options_.kernel_release,
                             std::string("/lib/firmware")}) {
      if (base.empty()) continue;
      const auto folder = fmt::format("{}/nvidia/{}", base, found_.version);
      for (const auto& name : root_.list(folder))
        if (name.starts_with("gsp") && name.ends_with(".bin")) add(folder + "/" + name, folder + "/" + name);
    }
  }

  void add_descriptions() {
    for (const auto* folder : kDataFolders) {
      for (const auto* name : kDescriptions) {
        const auto path = fmt::format("{}/{}", folder, name);
        add(path, path);
      }
      for (const auto* name : kVulkan) add(fmt::format("{}/{}", folder, name), fmt::format("/etc/{}", name));
    }
  }

  void add_sockets() {
    for (const auto* path : kSockets) {
      struct stat info{};
      if (::stat((options_.root + path).c_str(), &info) == 0 && S_ISSOCK(info.st_mode))
        files_.try_emplace(path, HostFile{prefix_ + path, path, true});
    }
  }

  void add_data_below(const std::string& folder) {
    for (const auto& name : options_.data_files) add("/" + name, folder + name);
    for (const auto& file : options_.shared_files)
      files_.try_emplace(folder + file.name, HostFile{file.source, folder + file.name, false, true});
  }

  /// The first of a place counts. False when there is no such file.
  bool add(const std::string& path, const std::string& destination) {
    const auto file = root_.open_file(path);
    if (file) add(*file, destination);
    return file.has_value();
  }

  void add(const RootFile& file, const std::string& destination) {
    files_.try_emplace(destination, HostFile{prefix_ + file.path, destination, false});
  }

  HostFiles result() {
    for (auto& [destination, file] : files_) found_.files.push_back(std::move(file));
    for (auto& [path, target] : links_)
      if (!files_.contains(path)) found_.links.push_back({path, target});
    found_.libraries.assign(loaded_.begin(), loaded_.end());
    return std::move(found_);
  }

  const Root& root_;
  const HostFilesOptions& options_;
  std::string prefix_;  ///< of the root on the host, before paths inside
  HostFiles found_;
  std::set<std::string> library_folders_;       ///< those of the driver's own libraries
  std::map<std::string, std::string> sonames_;  ///< by real path inside the root
  std::map<std::string, HostFile> files_;       ///< by destination
  std::map<std::string, std::string> links_;
  std::set<std::string> loaded_;
};

}  // namespace

Result<HostFiles> find_host_files(const HostFilesOptions& options) {
  DROVER_TRY(const auto root, Root::open(options.root));
  return HostFinder(root, options).find();
}

}  // namespace drover::driver
