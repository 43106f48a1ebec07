#pragma once

// The CDI specification of one claim: what a container that has it gets. Pure.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification.h"
#include "kube/dra/book.h"
#include "kube/gpu_edits.h"

namespace drover::kube::dra {

/// "k8s.gpu.nvidia.com", and the kind "k8s.gpu.nvidia.com/claim", as NVIDIA's driver names them.
std::string cdi_vendor(const std::string& driver);
/// "k8s.gpu.nvidia.com/claim=<uid>-gpu-3"; every share of a device has a name of its own.
std::string cdi_device_id(const std::string& driver, const std::string& uid, const AllocatedDevice& device);

/// kNotFound names a GPU that has no device node now.
///
/// A container may have several claims, and what the later one sets in its environment counts. So every claim
/// says the same there: NVIDIA_VISIBLE_DEVICES=void, which keeps the vendor's own hook from adding what an
/// image asks for. One that is all that its containers have names its GPUs instead. What is said of one GPU
/// has the GPU's number in its name: DROVER_GPU_3_SHARE=0.5, DROVER_GPU_3_MEMORY=8589934592.
///
/// A claim with limits brings its own pages, which are in the folder `pages`; `edits` have the guard then.
Result<cdi::Specification> claim_specification(const std::string& driver, const PreparedClaim& claim,
                                               const GpuEdits& edits, const std::string& pages);

}  // namespace drover::kube::dra
