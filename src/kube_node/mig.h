#pragma once

// The MIG instances of a Kubernetes node, made and destroyed for claims. Thread safe.

#include <functional>
#include <utility>

#include "kube/dra/preparer.h"
#include "machine_parts.h"

namespace drover {

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
