#pragma once

// A CDI specification as text. What is read back is the same value. Pure.

#include <string>

#include "cdi/specification.h"

namespace drover::cdi {

enum class Format { kJson, kYaml };
/// By its ending, as readers go by it.
Format format_of_file(const std::string& name);

/// Fields in the order of the interface's document; ends with a line end.
std::string write_specification(const Specification& specification, Format format = Format::kJson);

}  // namespace drover::cdi
