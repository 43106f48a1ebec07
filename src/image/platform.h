#pragma once

// Which images of an index this machine can run. Pure; thread safe.

#include <string>
#include <vector>

#include "base/result.h"
#include "image/document.h"

namespace drover::image {

/// Those for Linux on `architecture` (Go's name of this machine's), the most suitable first: those that name
/// the platform before those that do not, and of its variants the best that every such machine runs.
/// kUnsupported, with the platforms that there are, when there is none.
Result<std::vector<Descriptor>> for_machine(const std::vector<Descriptor>& images,
                                            const std::string& architecture);

/// Go's name of the machine that this runs on.
std::string architecture_of_machine();

}  // namespace drover::image
