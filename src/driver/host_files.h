#pragma once

// The files of the driver as a CDI specification tells of them: each at its own path, not copied into a
// volume. Which ones are the vendor's own rules (nvidia-ctk cdi generate; docs/cdi.md compares): every
// library whose name ends in the driver's version, a few more by name, programs, firmware, descriptions for
// graphics, and the sockets of services that run. Reads only; blocks; thread safe.

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/files.h"

namespace drover::driver {

struct HostFile {
  std::string source;       ///< on the host, without symbolic links: "<root>/usr/lib64/libcuda.so.535.216.03"
  std::string destination;  ///< in the container: "/usr/lib64/libcuda.so.535.216.03"
  bool socket = false;
  bool writable = false;

  bool operator==(const HostFile&) const = default;
};

/// Made in the container: programs look for libraries by these names.
struct HostLink {
  std::string path;    ///< "/usr/lib64/libcuda.so.1"
  std::string target;  ///< "libcuda.so.535.216.03"

  bool operator==(const HostLink&) const = default;
};

struct HostFiles {
  std::string version;
  std::vector<HostFile> files;         ///< by destination, each once
  std::vector<HostLink> links;         ///< by path
  std::vector<std::string> libraries;  ///< by path in the container, for the loader's cache: files and links

  bool operator==(const HostFiles&) const = default;
};

struct HostFilesOptions {
  std::string root = "/";
  std::string host_root;  ///< the root's path on the host, where this process sees another one; "" for `root`
  std::string version;    ///< of the kernel's driver; "": the library tells
  std::string kernel_release;  ///< as uname(2) says: firmware may lie below it
  /// Where the kernel looks for firmware first: its parameter firmware_class.path. "" for nowhere else.
  std::string firmware_folder;
  /// More files, relative to the root. They are shown below /usr too.
  std::vector<std::string> data_files;
  std::vector<SharedFile> shared_files;  ///< they are shown in the same places
  bool guarded =
      false;  ///< the libraries will be behind a guard (guard.h), and find both below kContainerFolder
};

/// kNotFound when there is no driver below the root, or only one of another version.
Result<HostFiles> find_host_files(const HostFilesOptions& options);

}  // namespace drover::driver
