#pragma once

// Settings of a GPU that NVIDIA's own program changes, as root: how long its time slices are, and how many
// processes may use it at once. Its arguments go to it as they are, with no shell; it has a clean environment
// and a deadline. Blocks. Thread safe.

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "share/arrangement.h"

namespace drover::share {

/// NVIDIA's programs of this machine: paths, and what they need in their environment.
struct Programs {
  std::string smi;          ///< nvidia-smi
  std::string mps_control;  ///< nvidia-cuda-mps-control; "" where there is none
  std::map<std::string, std::string> environment;
};

/// How many processes may use a GPU at once, as nvidia-smi numbers it: any number, one thread, none, or one
/// process, which an MPS daemon is then.
enum class ComputeMode { kDefault = 0, kExclusiveThread = 1, kProhibited = 2, kExclusiveProcess = 3 };
/// The same in nvidia-smi's words.
std::string_view name_of(ComputeMode mode);

/// kUnsupported where the program, or the GPU, does not do that; kTimeout when it does not answer.
Status set_interval(const Programs& programs, const std::string& gpu, Interval interval);
Result<ComputeMode> compute_mode(const Programs& programs, const std::string& gpu);
Status set_compute_mode(const Programs& programs, const std::string& gpu, ComputeMode mode);

}  // namespace drover::share
