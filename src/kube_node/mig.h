#pragma once

// The MIG instances of a Kubernetes node: looked at, and made and destroyed for claims. Puts NVML and the
// device nodes together. Thread safe.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/mig.h"
#include "gpu/mig_nodes.h"
#include "hardware.h"
#include "kube/dra/preparer.h"

namespace drover {

/// Of those in MIG mode, by UUID. One that does not answer now is as it was `before`.
std::map<std::string, gpu::MigGpu> discover_mig(const Hardware& hardware, const gpu::Inventory& inventory,
                                                const std::map<std::string, gpu::MigGpu>& before);

/// The device nodes that a container needs for an instance: the GPU's, and two that say which part of it.
Result<std::vector<gpu::DeviceNode>> mig_nodes_of(const Hardware& hardware, const gpu::Device& gpu,
                                                  const gpu::MigInstanceFacts& instance);

class KubeMig : public kube::dra::MigInstances {
 public:
  /// `hardware` must outlive it. `inventory` says which GPUs there are now; called from any thread.
  KubeMig(const Hardware& hardware, std::function<gpu::Inventory()> inventory)
      : hardware_(hardware), inventory_(std::move(inventory)) {}

  Result<cdi::Edits> find(const gpu::MigPart& part) override;
  Result<cdi::Edits> make(const gpu::MigPart& part) override;
  Status destroy(const gpu::MigPart& part) override;

 private:
  Result<cdi::Edits> edits_of(const gpu::MigPart& part, const gpu::MigInstanceFacts& instance) const;

  const Hardware& hardware_;
  std::function<gpu::Inventory()> inventory_;
};

}  // namespace drover
