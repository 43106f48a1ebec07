#pragma once

// Definitions to start from, for each kind. Each is right and runs as it is on a machine with one GPU. Pure.

#include <array>
#include <string_view>

namespace drover::cli {

struct ExampleFile {
  std::string_view kind;    ///< "app", "job", "task", "gang"
  std::string_view schema;  ///< the name of its schema (schemas/schemas.h)
  std::string_view text;
};

extern const std::array<ExampleFile, 4> kExampleFiles;

}  // namespace drover::cli
