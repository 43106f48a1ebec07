#pragma once

// How GPUs in MIG mode are cut up now: a YAML file that the library itself changes and that every process of
// a simulation reads (docs/simulator.md is the format). MigFile is thread safe, and safe between processes;
// the values are immutable.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/nvml_abi.h"
#include "sim/file_stamp.h"
#include "sim/profile.h"

namespace drover::sim {

/// A part of a GPU instance's compute slices.
struct ComputeInstance {
  unsigned int id = 0;
  unsigned int start = 0;  ///< compute slice
  unsigned int slices = 0;
};

struct GpuInstance {
  unsigned int id = 0;
  MigProfile profile;
  unsigned int start = 0;  ///< memory slice
  std::vector<ComputeInstance> compute;
};

struct MigGpu {
  bool enabled = false;
  std::vector<GpuInstance> instances;  ///< by id

  const GpuInstance* find(unsigned int id) const;
};

/// One entry per GPU of the profile, in its order.
using MigState = std::vector<MigGpu>;

inline constexpr unsigned int kMemorySlices = 8;
inline constexpr unsigned int kComputeSlices = 7;

/// How many of the GPU's memory slices an instance of the profile takes.
unsigned int memory_slices(const Model& model, const MigProfile& profile);
/// The memory slices at which one may begin, on an empty GPU; ascending.
std::vector<unsigned int> possible_starts(const Model& model, const MigProfile& profile);
/// Those that are free now.
std::vector<unsigned int> free_starts(const Model& model, const MigGpu& gpu, const MigProfile& profile);

/// Adds an instance at `start`, or where there is room. What NVML answers.
nvmlReturn_t add_instance(const Model& model, MigGpu& gpu, const MigProfile& profile,
                          std::optional<unsigned int> start, unsigned int& id);
nvmlReturn_t add_compute(GpuInstance& instance, unsigned int slices, unsigned int& id);

/// "MIG-<uuid>"; the same whenever the instance is made again in its place.
std::string mig_uuid(const Gpu& gpu, const GpuInstance& instance, const ComputeInstance& compute);
/// "MIG 3g.20gb", or "MIG 1c.3g.20gb" of a part.
std::string mig_name(const GpuInstance& instance, const ComputeInstance& compute);

/// GPUs that the document does not name are as the profile says. All mistakes are in the message.
Result<MigState> decode_mig_state(const nlohmann::json& document, const Profile& profile,
                                  std::string_view what);
nlohmann::json encode_mig_state(const MigState& state);

/// One file. When it is missing, the profile decides; one that is broken leaves the last good state.
class MigFile {
 public:
  /// `profile` must outlive this. With `verbose`, a broken file is said once on stderr.
  MigFile(std::filesystem::path file, const Profile& profile, bool verbose);

  /// As the file is now; never null.
  std::shared_ptr<const MigState> current();
  /// Writes what `edit` made of the state, unless it refuses. No other change comes between.
  nvmlReturn_t change(const std::function<nvmlReturn_t(MigState&)>& edit);

 private:
  void reload();
  nvmlReturn_t write(const MigState& state) const;

  const std::filesystem::path file_;
  const Profile* profile_;
  const bool verbose_;
  std::mutex mutex_;
  FileStamp stamp_;
  bool good_ = true;
  std::shared_ptr<const MigState> state_;
};

}  // namespace drover::sim
