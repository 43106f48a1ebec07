#include "gpu/architecture.h"

namespace drover::gpu {

std::string_view architecture_of(const ComputeCapability& capability) {
  switch (capability.major) {
    case 1:
      return "Tesla";
    case 2:
      return "Fermi";
    case 3:
      return "Kepler";
    case 5:
      return "Maxwell";
    case 6:
      return "Pascal";
    case 7:
      return capability.minor < 5 ? "Volta" : "Turing";
    case 8:
      return capability.minor < 9 ? "Ampere" : "Ada Lovelace";
    case 9:
      return "Hopper";
    case 10:
    case 11:
    case 12:
      return "Blackwell";
    default:
      return "";
  }
}

}  // namespace drover::gpu
