#pragma once

// One initialised simulator: the profile, the GPUs of it that this process may see, and their faults.
// Immutable but for the files of faults, of MIG instances and of what lives behind it; thread safe.

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/nvml_abi.h"
#include "sim/faults.h"
#include "sim/groups.h"
#include "sim/limits.h"
#include "sim/live.h"
#include "sim/mig.h"
#include "sim/mig_handles.h"
#include "sim/profile.h"

/// What the handles of the C interface point to.
struct nvmlDevice_st {
  std::size_t position = 0;  ///< in the profile
  const drover::sim::Gpu* gpu = nullptr;
};

namespace drover::sim {

/// Where things are, from the environment and the place of the library (docs/simulator.md).
struct Settings {
  std::filesystem::path profile;
  std::filesystem::path faults;
  std::filesystem::path mig;
  std::filesystem::path live;
  std::optional<std::filesystem::path> devices;  ///< GPUs are hidden unless their nodes here may be opened
  std::optional<std::filesystem::path> group;    ///< a folder that stands for the process's control group
  bool verbose = false;
};

/// `library_file` is the real path of the library itself.
Settings settings_from_environment(const std::filesystem::path& library_file);

/// The real driver sees a GPU when its node may be opened. Behind a node of the simulator is no driver:
/// ENXIO, ENODEV and EIO mean "allowed, but nothing there"; EPERM, EACCES and ENOENT mean hidden.
bool may_open(const std::filesystem::path& node);

class Machine {
 public:
  static Result<std::shared_ptr<const Machine>> open(const Settings& settings);

  /// Use open(). `visible` are positions in the profile.
  Machine(Profile profile, const std::vector<std::size_t>& visible, const Settings& settings);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const Profile& profile() const { return profile_; }
  /// By PCI address, whether the driver lists them now or not. The pointers are the handles.
  const std::vector<std::unique_ptr<nvmlDevice_st>>& devices() const { return devices_; }
  /// Those that the driver lists now: what it counts, from 0.
  std::vector<nvmlDevice_st*> listed() const;
  /// The place of this one among them.
  unsigned int index_of(const nvmlDevice_st& device) const;
  /// The device of a handle, or null when it is none of ours.
  nvmlDevice_st* find(nvmlDevice_t handle) const;
  /// The device at a position of the profile, or null when this process may not see it.
  nvmlDevice_st* at(std::size_t position) const;
  std::shared_ptr<const Faults> faults() const { return faults_->current(); }
  const LiveReader& live() const { return live_; }
  const LimitFile& limits() const { return limits_; }
  /// The control groups of this process, and whether folders stand for them.
  const Groups& groups() const { return groups_; }
  bool plays_groups() const { return plays_groups_; }
  /// Whether the driver limits memory itself: since 615.
  bool limits_memory() const;
  MigFile& mig() const { return *mig_; }
  MigHandles& mig_handles() const { return *mig_handles_; }

 private:
  const Profile profile_;
  std::vector<std::unique_ptr<nvmlDevice_st>> devices_;
  std::unique_ptr<FaultFile> faults_;
  const LiveReader live_;
  const LimitFile limits_;
  const bool plays_groups_;
  const Groups groups_;
  std::unique_ptr<MigFile> mig_;
  std::unique_ptr<MigHandles> mig_handles_;
};

}  // namespace drover::sim
