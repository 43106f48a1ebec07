#pragma once

// Who made GPUs work, by what the driver tells of the GPUs and of processes. Pure.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "gpu/usage.h"

namespace drover::gpu {

/// Who has a GPU, or a share of it, by its UUID.
using GpuHolders = std::map<std::string, std::set<std::string>>;

/// Of those who have GPUs, who made one work, or may have: not every driver says what each process did.
/// `owner_of` names whose a process is; "" where that is not known. It may be empty, where processes of
/// others are not seen.
std::set<std::string> who_works(const std::map<std::string, GpuUsage>& usage, const GpuHolders& holders,
                                const std::function<std::string(std::uint32_t pid)>& owner_of);

}  // namespace drover::gpu
