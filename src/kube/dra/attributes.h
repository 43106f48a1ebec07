#pragma once

// What the scheduler may know of a GPU, as attributes of a DRA device. Names and forms are those of NVIDIA's
// driver (kubernetes-sigs/dra-driver-nvidia-gpu) where it has them; docs/kubernetes-dra.md lists ours. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/dra/view.h"

namespace drover::kube::dra {

/// "gpu-3" for /dev/nvidia3; absent for a GPU whose number is not known.
std::optional<std::string> device_name(const gpu::Device& device);

/// Of every GPU of the inventory, in its order: {"uuid": {"string": "GPU-…"}, …}.
std::vector<nlohmann::json> attributes_of(const View& view);

/// "550.163.01" as a semantic version, "550.163.1"; absent for what is no version.
std::optional<std::string> semantic_version(const std::string& version);

}  // namespace drover::kube::dra
