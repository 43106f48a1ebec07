#pragma once

// Which files this process sees under their paths. Two processes with one view see the same ones: they are on
// one machine, in one mount namespace, and have one root folder. Thread safe.

#include <string>

namespace drover {

/// A name of this process's view, to be compared; "" when the kernel does not say.
std::string file_view();

}  // namespace drover
