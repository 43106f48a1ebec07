#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"
#include "kube/scheduler/claims/allocate.h"
#include "kube/scheduler/claims/extended_resources.h"

namespace {

using namespace drover;
using namespace drover::kube::scheduler;

const nlohmann::json& list(const nlohmann::json& object, const char* name) {
  static const nlohmann::json none = nlohmann::json::array();
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_array() ? *found : none;
}

template <typename T>
void require_words(const Result<T>& read) {
  fuzz::require(read || !read.error().message.empty());
}

}  // namespace

/// Whatever stands in slices, classes and claims: it is read or refused in words, and what a claim is given
/// nobody else is given, and is free again once the claim is gone.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = parse_json(fuzz::text_of(data, size), "the input");
  if (!object) return 0;
  DevicePools pools;
  for (const auto& item : list(*object, "slices"))
    if (auto slice = read_resource_slice(item)) pools.put_slice(std::move(*slice));
  for (const auto& item : list(*object, "classes"))
    if (auto read = read_device_class(item)) pools.put_class(std::move(*read));
  for (const auto& item : list(*object, "taintRules"))
    if (auto rule = read_device_taint_rule(item)) pools.put_taint_rule(std::move(*rule));
  FieldReader reader;
  (void)read_container_resources(reader, *object);
  require_words(reader.status("the input"));
  const Node node{.name = "n0", .labels = {{"topology.kubernetes.io/zone", "z1"}}};
  AllocateOptions options;
  options.admin_access = true;
  options.most_tries = 2'000;
  for (const auto& item : list(*object, "claims")) {
    auto claim = read_resource_claim(item);
    require_words(claim);
    if (!claim) continue;
    claim->allocation = nullptr;
    const auto found = allocate(pools, node, {&*claim}, options);
    require_words(found);
    if (!found || !found->fits()) continue;
    const auto& given = found->allocations.front();
    claim->allocation = std::make_shared<const ClaimAllocation>(given);
    fuzz::require(given.devices.size() <= 32 && is_available_on(given, node));
    pools.put_claim(*claim);
    auto other = *claim;
    other.uid += "'";
    const auto next = allocate(pools, node, {&other}, options);
    if (next && next->fits())
      for (const auto& mine : given.devices)
        for (const auto& theirs : next->allocations.front().devices)
          fuzz::require(mine.id != theirs.id || mine.admin || theirs.admin ||
                        mine.share_id != theirs.share_id);
    pools.remove_claim(claim->uid);
    const auto again = allocate(pools, node, {&*claim}, options);
    fuzz::require(again && to_json(again->allocations.front(), "") == to_json(given, ""));
  }
  return 0;
}
