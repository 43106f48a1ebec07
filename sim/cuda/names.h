#pragma once

// All functions of the public driver interface, as names/*.txt lists them: each is exported, and those that
// nothing else defines answer that they are not supported. Made by CMake.

#include <span>
#include <string_view>

namespace drover::sim::cuda {

struct NamedFunction {
  std::string_view name;  ///< as cuGetProcAddress() knows it
  int version = 0;        ///< the first with it: 1000 * major + 10 * minor
  bool per_thread = false;
  void* address = nullptr;
};

/// Those of a name, by version. Pure.
std::span<const NamedFunction> functions_named(std::string_view name);

}  // namespace drover::sim::cuda
