#pragma once

// Whether an image can work on a machine's GPUs: kernel driver, the user-land driver that the image
// carries, the CUDA that it was built for, what it requires, and the compute capabilities. Pure.

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/injection.h"
#include "gpu/machine_facts.h"

namespace drover::driver {

/// A library of a user-land driver in an image.
struct CarriedLibrary {
  std::string path;     ///< in the container: "/usr/lib/x86_64-linux-gnu/libcuda.so.396.44"
  std::string version;  ///< "396.44"
};

struct ImageFacts {
  Environment environment;              ///< as the program gets it, before the driver's own folders are added
  std::vector<CarriedLibrary> carried;  ///< where the loader looks, in its order
  std::vector<CarriedLibrary> compat;   ///< of CUDA's forward compatibility package
  bool immutable = false;               ///< nothing is added to the image, so it must carry the driver
};

/// kUnsupported with both versions and the way out when it cannot work; kInvalid when the image's conditions
/// are not understood.
Status match(const gpu::MachineFacts& machine, const ImageFacts& image);

/// The compatibility package serves a newer CUDA than the kernel's driver, and its libraries belong before
/// the machine's own. An older one would only hide them.
bool uses_compat(const gpu::MachineFacts& machine, const std::vector<CarriedLibrary>& compat);

}  // namespace drover::driver
