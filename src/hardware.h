#pragma once

// The GPUs, the driver and the host that this process serves: the real ones, or those of a simulator profile.
// Puts the rooms gpu and driver together for `serve`, `doctor` and `cdi`. Thread safe after open().

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/allowed.h"
#include "cdi/registry.h"
#include "cdi/specification.h"
#include "container/containerizer.h"
#include "driver/guard.h"
#include "driver/host_files.h"
#include "driver/volume.h"
#include "gpu/discovery.h"
#include "gpu/host.h"
#include "gpu/mig_nodes.h"
#include "gpu/nvml.h"
#include "gpu/simulation.h"
#include "share/gpu_settings.h"

namespace drover {

struct HardwareOptions {
  std::string state;                     ///< folder
  std::string simulate;                  ///< profile; "" for the real machine
  std::string driver_root;               ///< "" for the host's own root
  std::vector<std::string> cdi_folders;  ///< where other vendors' specifications are
  bool volume = true;            ///< make a driver volume of that root at once, so that a wrong one is told
  std::string host_driver_root;  ///< the driver root's path on the host, where this process sees another one
  std::vector<std::string> allowed_devices;  ///< what of them who may have: cdi/allowed.h
  std::string hook_program;  ///< what CDI specifications name, on the host; "" for this program
  driver::Guard guard;       ///< on the host; none for the one of this program
};

class Hardware {
 public:
  /// A machine without GPUs is fine. Fails for a profile that is not known and for a driver root without a
  /// driver.
  static Result<Hardware> open(const HardwareOptions& options);

  /// Looks at the GPUs now; blocks while the driver answers. A driver that was not there before is tried
  /// again, so that one which is loaded late needs no restart.
  gpu::Inventory discover() const;
  /// NVML as it is now, or why it could not be loaded; replaced when a later attempt succeeds, and when the
  /// kernel runs another driver than it is of, which works once nobody holds the old one any more. A driver
  /// that does not let it be loaded holds nobody up for longer than some seconds.
  gpu::SharedNvml shared_nvml() const;
  /// None where it is not installed.
  const driver::Guard& guard() const { return guard_; }
  /// What runs the hooks of CDI specifications, on the host.
  const std::string& hook_program() const { return program_; }
  const gpu::HostFacts& host() const { return host_; }
  /// Where the GPUs' nodes are on the machine now: /dev, unless they are simulated, or only below the driver
  /// root, where a driver container makes them.
  std::string device_folder() const { return device_places().on_host; }
  /// Where the driver tells of the nodes of MIG devices.
  gpu::MigNodePlaces mig_node_places() const;

  Result<std::vector<gpu::DeviceNode>> nodes_of(const std::vector<gpu::Device>& devices) const;
  /// Its volume is built when it is asked for and not there; blocks then. `guarded`: with the guard before it
  /// (driver/guard.h). This object must outlive the answer.
  Result<container::DriverSupply> driver_supply(bool guarded = false) const;
  /// Removes driver volumes of other drivers than the machine has now: driver::remove_old_volumes.
  Result<driver::RemovedVolumes> remove_old_volumes(
      std::uint64_t bytes, const std::function<bool(const std::string& name)>& is_used) const;
  /// What the CDI devices of other vendors do that a task names. kPermissionDenied for one that the
  /// owner of the task may not have, and for one that brings GPUs along, which only the placement gives;
  /// kInvalid for one that brings files to a task without an image, which would change the machine's own.
  Result<cdi::Edits> devices_of(const workload::Task& task) const;
  /// NVIDIA's programs that set how GPUs are shared; simulated ones of simulated GPUs. kNotFound without
  /// nvidia-smi.
  Result<share::Programs> sharing_programs() const;
  /// The CDI specification of these GPUs.
  Result<cdi::Specification> cdi_specification(gpu::Inventory inventory) const;

 private:
  Hardware() = default;
  std::function<Result<gpu::Nvml>()> loader() const;
  bool is_out_of_date(const gpu::Nvml& nvml) const;
  template <typename FindOptions>
  FindOptions find_options() const;
  Result<driver::DriverFiles> files_of_volume() const;
  Result<driver::Volume> volume(const driver::DriverFiles& files) const;
  /// `to_be_guarded`: with what the libraries look for beside the guard.
  Result<driver::HostFiles> driver_files(bool to_be_guarded = false) const;
  Result<driver::HostFiles> guard_files(container::DriverSupply& supply) const;
  /// One folder, as this process sees it and as the host does.
  struct DevicePlaces {
    std::string here, on_host;
  };
  DevicePlaces device_places() const;
  DevicePlaces places_below_driver_root() const;
  Result<std::vector<gpu::DeviceNode>> control_nodes() const;
  Error with_places_hint(Error error) const;
  std::string driver_root() const;
  std::string driver_version() const;

  struct Loaded {
    std::mutex mutex;
    std::condition_variable changed;
    gpu::SharedNvml nvml;
    bool loading = false;  ///< by a thread that may never return
  };

  HardwareOptions options_;
  cdi::Allowed allowed_;
  std::shared_ptr<cdi::KeptRegistry> registry_;
  std::optional<gpu::Simulation> simulation_;
  std::shared_ptr<Loaded> loaded_ = std::make_shared<Loaded>();
  gpu::HostFacts host_;
  std::string program_;  ///< our own file, for the hooks of containers
  driver::Guard guard_;  ///< none where it is not installed
};

}  // namespace drover
