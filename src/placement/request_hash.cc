#include "placement/request_hash.h"

#include <string_view>

namespace drover::placement {
namespace {

class Hasher {
 public:
  template <typename... Numbers>
  void numbers(Numbers... values) {
    (mix(static_cast<std::uint64_t>(values)), ...);
  }
  void text(std::string_view value) { mix(std::hash<std::string_view>()(value)); }
  std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t value) {
    value_ = (value_ ^ value) * 0x9e3779b97f4a7c15ULL;
    value_ ^= value_ >> 32;
  }
  std::uint64_t value_ = 0;
};

void add(Hasher& hasher, const DeviceClaim& claim) {
  const auto& filter = claim.filter;
  hasher.numbers(claim.count, filter.models.size(), filter.min_memory_bytes,
                 filter.ecc ? 1 + *filter.ecc : 0);
  const auto capability = filter.min_compute_capability.value_or(gpu::ComputeCapability{-1, -1});
  hasher.numbers(capability.major, capability.minor);
  for (const auto& model : filter.models) hasher.text(model);
  hasher.text(filter.min_driver);
}

}  // namespace

std::uint64_t hash_of(const Request& request) {
  Hasher hasher;
  hasher.numbers(request.gpus.size(), request.different_models, request.share.milli,
                 request.share.memory_bytes, request.interconnect.min_nvlinks, request.interconnect.max_pcie,
                 request.cpu_affinity, request.nic, request.milli_cpus, request.memory_bytes);
  for (const auto& claim : request.gpus) add(hasher, claim);
  for (const auto& attribute : request.attributes) {
    hasher.text(attribute.name);
    hasher.numbers(attribute.any_of.size());
    for (const auto& value : attribute.any_of) hasher.text(value);
  }
  for (const auto& set : request.capabilities.sets) {
    hasher.numbers(set.size());
    for (const auto& capability : set) hasher.numbers(capability.major, capability.minor);
  }
  hasher.numbers(reinterpret_cast<std::uintptr_t>(request.eligibility.get()));
  hasher.text(request.group);
  hasher.text(request.part);
  return hasher.value();
}

}  // namespace drover::placement
