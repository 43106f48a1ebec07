#include "driver/files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/files.h"
#include "driver/elf.h"
#include "driver/ld_cache.h"
#include "driver/names.h"
#include "driver/programs.h"
#include "driver/root.h"

namespace drover::driver {
namespace {

constexpr AbiVersion kThreadLocalAbi{2, 3, 99};

struct Candidate {
  std::string name;  ///< as the loader knows it
  std::string path;  ///< inside the root
};

struct Library {
  std::string name;
  std::string path;       ///< inside the root, without symbolic links
  std::string file_name;  ///< last part of path
  ElfFile elf;
};

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<std::uint16_t> own_machine() {
  const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto elf = read_elf(fd.get(), "/proc/self/exe");
  return elf ? std::optional(elf->machine) : std::nullopt;
}

std::vector<Candidate> from_cache(const Root& root, std::vector<std::string>& skipped) {
  constexpr const char* kCache = "/etc/ld.so.cache";
  const auto file = root.open_file(kCache);
  if (!file) return {};
  const auto bytes = read_all(file->fd.get(), kCache, kMaxLdCache);
  const auto entries = bytes ? parse_ld_cache(*bytes) : tl::make_unexpected(bytes.error());
  if (!entries) {
    skipped.push_back(fmt::format("{}: {}", kCache, entries.error().message));
    return {};
  }
  std::vector<Candidate> found;
  for (const auto& entry : *entries)
    if (is_driver_library(entry.name)) found.push_back({entry.name, entry.path});
  return found;
}

std::vector<Candidate> from_folders(const Root& root) {
  std::vector<Candidate> found;
  for (const auto& folder : library_folders([&](const auto& parent) { return root.list(parent); }))
    for (const auto& name : root.list(folder))
      if (is_driver_library(name)) found.push_back({name, folder + "/" + name});
  return found;
}

class Finder {
 public:
  Finder(const Root& root, const FindOptions& options) : root_(root), options_(options) {
    found_.root = options.root;
    found_.version = options.version;
    found_.shared = options.shared_files;
  }

  Result<DriverFiles> find() {
    load(from_cache(root_, found_.skipped));
    if (!has_driver()) load(from_folders(root_));
    if (!has_driver())
      return fail(ErrorKind::kNotFound,
                  fmt::format("there is no NVIDIA driver below '{}': neither libnvidia-ml.so nor libcuda.so",
                              options_.root),
                  "install the driver, or name the folder that holds it with --driver-root");
    if (found_.version.empty()) found_.version = version_of_driver();
    DROVER_CHECK_OK(drop_stale());
    drop_foreign();
    drop_lookalikes();
    for (const auto& library : libraries_) add(library);
    add_programs();
    DROVER_CHECK_OK(add_data());
    return result();
  }

 private:
  void skip(const std::string& path, std::string_view why) {
    found_.skipped.push_back(fmt::format("{}: {}", path, why));
  }

  void load(const std::vector<Candidate>& candidates) {
    for (const auto& candidate : candidates) {
      auto file = root_.open_file(candidate.path);
      auto elf = file ? read_elf(file->fd.get(), candidate.path) : tl::make_unexpected(file.error());
      if (elf)
        libraries_.push_back({candidate.name, file->path, last_part(file->path), std::move(*elf)});
      else
        skip(candidate.path, elf.error().message);
    }
  }

  bool has_driver() const { return std::any_of(libraries_.begin(), libraries_.end(), is_core); }

  static bool is_core(const Library& library) {
    return names_library(library.name, "libnvidia-ml.so") || names_library(library.name, "libcuda.so");
  }

  /// The first that the loader would take tells.
  std::string version_of_driver() const {
    for (const auto& library : libraries_)
      if (is_core(library) && !version_in(library.file_name).empty()) return version_in(library.file_name);
    return "";
  }

  template <typename Predicate>
  void drop_if(Predicate why_not) {
    std::erase_if(libraries_, [&](const Library& library) {
      const std::string why = why_not(library);
      if (!why.empty()) skip(library.path, why);
      return !why.empty();
    });
  }

  Status drop_stale() {
    std::set<std::string> others;
    drop_if([&](const Library& library) -> std::string {
      const auto version = version_in(library.file_name);
      if (version.empty() || found_.version.empty() || version == found_.version) return "";
      others.insert(version);
      return fmt::format("it belongs to driver {}, not {}", version, found_.version);
    });
    if (found_.version.empty())
      return fail(ErrorKind::kNotFound,
                  fmt::format("the driver below '{}' does not tell its version", options_.root),
                  "its libraries should be named like libcuda.so.535.216.03: reinstall the driver");
    if (has_driver()) return {};
    return fail(ErrorKind::kNotFound,
                fmt::format("below '{}' is driver {}, but the kernel runs driver {}", options_.root,
                            fmt::join(others, ", "), found_.version),
                "install the same version, or reboot to load the new kernel module");
  }

  /// Of each class one architecture: this program's own if it is among them, else the one found first.
  void drop_foreign() {
    const auto own = own_machine();
    std::map<ElfClass, std::uint16_t> machines;
    for (const auto& library : libraries_) {
      const auto chosen = machines.try_emplace(library.elf.elf_class, library.elf.machine).first;
      if (library.elf.machine == own) chosen->second = library.elf.machine;
    }
    drop_if([&](const Library& library) {
      return library.elf.machine == machines[library.elf.elf_class] ? "" : "it is for another architecture";
    });
  }

  void drop_lookalikes() {
    drop_if([](const Library& library) -> std::string {
      const auto& needed = library.elf.needed;
      const bool nvidia = std::any_of(needed.begin(), needed.end(), [](const std::string& name) {
        return name == "libGLdispatch.so" || name.starts_with("libnvidia-gl") ||
               name.starts_with("libnvidia-egl");
      });
      if (is_ambiguous_library(library.name) && !nvidia) return "it is not NVIDIA's";
      // Old drivers carry a second one, for threads of long ago. Without a note there is only one.
      if (names_library(library.name, "libnvidia-tls.so") &&
          library.elf.abi.value_or(kThreadLocalAbi) != kThreadLocalAbi)
        return "it is for another thread library";
      return "";
    });
  }

  void add(const Library& library) {
    const std::string folder = library.elf.elf_class == ElfClass::k64 ? "lib64/" : "lib/";
    const auto [known, is_new] =
        files_.try_emplace(folder + library.file_name, DriverFile{library.path, "", false});
    if (!is_new && known->second.source != library.path) {
      skip(library.path, fmt::format("'{}' comes first", known->second.source));
      return;
    }
    std::set<std::string> names{library.name, library.elf.soname};
    constexpr std::string_view kVendor = "libGLX_nvidia";
    if (names_library(library.name, "libGLX_nvidia.so"))
      names.insert("libGLX_indirect" + library.name.substr(kVendor.size()));
    for (const auto& name : names)
      if (!name.empty() && name.find('/') == std::string::npos)
        links_.try_emplace(folder + name, library.file_name);
  }

  void add_programs() {
    std::set<std::string> folders;
    for (const auto& library : libraries_) folders.insert(library.path.substr(0, library.path.rfind('/')));
    for (const auto& name : program_names())
      if (const auto program = find_program(root_, name, folders))
        files_.try_emplace("bin/" + name, DriverFile{program->file.path, "", true});
  }

  Status add_data() {
    for (const auto& name : options_.data_files) {
      DROVER_TRY(const auto file, root_.open_file(name));
      files_.try_emplace(name, DriverFile{file.path, "", false});
    }
    return {};
  }

  DriverFiles result() {
    for (auto& [destination, file] : files_)
      found_.files.push_back({file.source, destination, file.executable});
    for (const auto& [path, target] : links_)
      if (!files_.contains(path)) found_.links.push_back({path, target});
    std::sort(found_.skipped.begin(), found_.skipped.end());
    return std::move(found_);
  }

  const Root& root_;
  const FindOptions& options_;
  DriverFiles found_;
  std::vector<Library> libraries_;           // in the loader's order
  std::map<std::string, DriverFile> files_;  // by destination
  std::map<std::string, std::string> links_;
};

}  // namespace

Result<DriverFiles> find(const FindOptions& options) {
  DROVER_TRY(const auto root, Root::open(options.root));
  return Finder(root, options).find();
}

}  // namespace drover::driver
