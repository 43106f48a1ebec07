#pragma once

// `drover cdi-hook`: the hooks that a CDI specification of Drover's names. An OCI runtime calls them when a
// container's mounts are made and its root is not yet its own, whichever engine started it:
//
//   drover cdi-hook create-symlinks --link TARGET::PATH …
//   drover cdi-hook update-ldcache --library PATH …
//   drover cdi-hook check-guard --mount SOURCE::PATH …

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/hook/container_root.h"

namespace drover::driver {

/// What a specification writes behind the program's name.
inline constexpr const char* kCdiHookCommand = "cdi-hook";

/// `arguments` from the name of the hook on. Reads the container's state from standard input; tells what is
/// wrong on standard error. Returns the exit status.
int run_cdi_hook(std::span<char* const> arguments);

/// "libcuda.so.1::/usr/lib/libcuda.so" makes a link at the path that holds the target. What is mounted stays
/// as it is.
Status create_symlinks(const ContainerRoot& root, const std::vector<std::string>& links);

/// Puts libraries that are in the container into its /etc/ld.so.cache; those that are not are left out. A
/// cache that is damaged is written anew.
Status update_ld_cache(const ContainerRoot& root, const std::vector<std::string>& libraries);

/// "/host/file::/path": refuses a container in which another file is at the path. Where a container has GPUs
/// by several claims, engines let the last one's mount win, and nobody would be told that a share holds no
/// more.
Status check_guard(const ContainerRoot& root, const std::vector<std::string>& mounts);

}  // namespace drover::driver
