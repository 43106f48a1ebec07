#pragma once

// The node's DRA driver: tells the scheduler of the GPUs, and prepares claims of them for the kubelet.
//
// Serves <kubelet>/plugins/<driver>/dra.sock and the registration socket in <kubelet>/plugins_registry, and
// makes both anew when somebody removes them; publishes ResourceSlices whenever the view changes, and again
// when the kubelet, as it does when it starts, has deleted them. Two threads of its own. Thread safe.
//
//   Driver driver({.node = "gpu-1"}, claims, slices, edits);
//   driver.update(view);

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "kube/dra/book.h"
#include "kube/dra/claim_specification.h"
#include "kube/dra/devices.h"
#include "kube/dra/preparer.h"
#include "kube/dra/publisher.h"
#include "kube/dra/view.h"

namespace drover::kube::dra {

struct DriverOptions {
  std::string driver = "gpu.nvidia.com";
  std::string node;  ///< the Node's name; the pool's too
  std::string kubelet_folder = "/var/lib/kubelet";
  std::string cdi_folder = "/var/run/cdi";
  Sharing sharing = Sharing::kWhole;
  workload::ShareBy share_by = workload::ShareBy::kAuto;
  std::chrono::milliseconds poll_interval{500};  ///< how often sockets are looked at
  /// As in PreparerOptions.
  std::function<Status(const std::set<std::string>& uuids)> take;
  /// How long it took to prepare a claim, or to refuse it. Called from any thread; may be absent.
  std::function<void(std::chrono::duration<double> taken)> prepared;
  /// Called from any thread; `text` is a sentence. May be absent.
  std::function<void(const std::string& text)> info, warn;
};

/// Whether the driver does what it should, for people and for a node condition.
struct DriverState {
  bool registered = false;
  /// What is wrong now; "" when nothing is.
  std::string sockets, registration, recovery, slices;

  bool operator==(const DriverState&) const = default;
};

/// UUIDs of the GPUs that claims had on this node when a driver of this name ran last. Without a checkpoint
/// that can be read these are all that a claim's specification names, until the driver has asked the API
/// server.
Result<std::set<std::string>> gpus_left_in_use(const DriverOptions& options, const gpu::Inventory& inventory);

/// Where the pages of claims are.
std::string shares_folder(const std::string& kubelet_folder, const std::string& driver);

class Driver {
 public:
  /// `edits` says how containers are edited for the GPUs of the view now; called from any thread, one at a
  /// time.
  /// `mig` may be null where no GPU is in MIG mode, and `sharing` where nothing is arranged on the machine.
  Driver(DriverOptions options, std::shared_ptr<ClaimSource> claims, std::shared_ptr<SliceApi> slices,
         FindEdits edits, std::shared_ptr<MigInstances> mig = nullptr,
         std::shared_ptr<ClaimSharing> sharing = nullptr);
  /// Waits for calls that are under way. The slices stay: a driver that starts again finds its claims as they
  /// were.
  ~Driver();

  /// Never blocks for long. Until it is called for the first time nothing is published and no claim prepared.
  void update(View view);

  DriverState state() const;
  /// Of the claims that are prepared.
  std::vector<ClaimShare> shares() const;
  /// MIG instances that the driver has made; kUnavailable until it knows them.
  Result<std::set<gpu::MigPart>> mig_instances() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover::kube::dra
