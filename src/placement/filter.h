#pragma once

// Whether a GPU is what a filter asks for. Pure; thread safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/decision.h"
#include "placement/node_kind.h"
#include "placement/request.h"

namespace drover::placement {

/// "a100" is a word of "NVIDIA A100-SXM4-80GB", "A10" is not; words end where letters and digits do.
bool model_matches(std::string_view wanted, std::string_view model);
/// The size by which a GPU with so much memory is sold: drivers report less, since they and ECC keep a
/// part. 39.6 GiB are those of a card of 40, and 44.5 GiB those of one of 48: the next size that there is,
/// unless a tenth of it or more is missing. Grows with `bytes`, and is never less.
std::uint64_t sold_memory(std::uint64_t bytes);
/// "535.104.05" is at least "535.104"; an unknown driver is at least nothing.
bool driver_at_least(std::string_view driver, std::string_view minimum);

/// Devices of this kind that the filter allows when it is read up to this dimension: kGpuCount allows all,
/// kModel those of its models, … kDriver those that satisfy every field. Memory is compared
/// with what a GPU is sold by; a share by memory is a minimum too, of what there really is.
DeviceMask allowed_devices(const NodeKind& kind, const DeviceFilter& filter, const Share& share,
                           Dimension up_to);

/// Devices of each of the sets.
std::vector<DeviceMask> devices_by_capabilities(const NodeKind& kind, const CapabilitySets& capabilities);

/// Dimensions of a filter, in the order in which they are looked at.
inline constexpr Dimension kFilterDimensions[] = {Dimension::kModel, Dimension::kGpuMemory,
                                                  Dimension::kComputeCapability, Dimension::kEcc,
                                                  Dimension::kDriver};

}  // namespace drover::placement
