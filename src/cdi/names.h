#pragma once

// How CDI spells the names of devices: "vendor.com/class=name" (cncf-tags/container-device-interface,
// SPEC.md, and its parser package). Pure.

#include <compare>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::cdi {

/// "nvidia.com/gpu=0": kind "nvidia.com/gpu", name "0".
struct DeviceName {
  std::string kind;
  std::string name;

  auto operator<=>(const DeviceName&) const = default;
};
std::string to_string(const DeviceName& name);

/// kInvalid, in a sentence that says which part is wrong.
Result<DeviceName> parse_device_name(std::string_view text);

/// Whether text looks like a CDI name rather than a path: what `--device` of container engines goes by.
bool looks_like_device_name(std::string_view text);

/// "vendor.com/class": a letter first, then letters, digits, '-', '_', '.'; a letter or digit last.
Status check_kind(std::string_view kind);
/// A letter or digit first and last; '-', '_', '.' and ':' between.
Status check_name(std::string_view name);

}  // namespace drover::cdi
