#pragma once

// What makes containers of tasks: the OCI runtime, the Docker Engine, and which of them are asked, as `drover
// serve` was told.

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/cli.h"
#include "container/launcher.h"
#include "image/store.h"
#include "memory_limits.h"

namespace drover {

struct Containerizers {
  std::unique_ptr<container::Launcher> launcher;
  std::string runtime;  ///< for people: "runc 1.1.5, Docker Engine 20.10.24"
};

/// kInvalid when an option is for one that is not used.
Status check_containerizers(const cli::ServeOptions& options);

/// Whichever are configured, both are there: tasks of an earlier life may be the other's. The store outlives
/// the launcher, and so do the limits.
Result<Containerizers> make_containerizers(const cli::ServeOptions& options, image::Store& images,
                                           const MemoryLimits& limits);

/// What was pulled and loaded, in the state folder.
Result<image::Store> open_images(const cli::ServeOptions& options);
image::VariantLookup variant_lookup(image::Store& images);

}  // namespace drover
