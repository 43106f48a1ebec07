#pragma once

// The MIG instances of this machine: looked at, made and destroyed. Puts NVML and the device nodes together.
// Thread safe; blocks while the driver answers.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "container/part_book.h"
#include "gpu/mig.h"
#include "hardware.h"

namespace drover {

/// Calls `use(const Nvml&)`, unless there is none.
template <typename Use>
auto with_nvml(const Hardware& hardware, Use use) -> decltype(use(std::declval<const gpu::Nvml&>())) {
  const auto nvml = hardware.shared_nvml();
  if (!*nvml) return Failure(nvml->error());
  return use(**nvml);
}

/// Of those in MIG mode, by UUID. One that does not answer now is as it was `before`.
std::map<std::string, gpu::MigGpu> discover_mig(const Hardware& hardware, const gpu::Inventory& inventory,
                                                const std::map<std::string, gpu::MigGpu>& before);

/// The device nodes that a container needs for an instance: the GPU's, and two that say which part of it.
Result<std::vector<gpu::DeviceNode>> mig_nodes_of(const Hardware& hardware, const gpu::Device& gpu,
                                                  const gpu::MigInstanceFacts& instance);

/// Takes out the instances that are `ours`.
void leave_foreign(std::map<std::string, gpu::MigGpu>& mig, const std::set<gpu::MigPart>& ours);

/// For the tasks of this machine.
class MachineParts : public container::PartMaker {
 public:
  explicit MachineParts(std::shared_ptr<const Hardware> hardware) : hardware_(std::move(hardware)) {}

  Result<bool> exists(const gpu::MigPart& part) override;
  Result<container::MadePart> make(const gpu::MigPart& part) override;
  Status destroy(const gpu::MigPart& part) override;

 private:
  std::shared_ptr<const Hardware> hardware_;
};

}  // namespace drover
