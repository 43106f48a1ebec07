#include "placement/schedule/shapes.h"

#include <boost/container_hash/hash.hpp>

namespace drover::placement::schedule {
namespace {

/// Over what usually tells requests apart; the rest is left to comparing them.
std::size_t hash_of(const Gang& gang) {
  std::size_t seed = gang.members.size();
  for (const auto& member : gang.members) {
    for (const auto& claim : member.gpus) {
      boost::hash_combine(seed, claim.count);
      boost::hash_combine(seed, claim.filter.min_memory_bytes);
      for (const auto& model : claim.filter.models) boost::hash_combine(seed, model);
    }
    boost::hash_combine(seed, member.share.milli);
    boost::hash_combine(seed, member.share.memory_bytes);
    boost::hash_combine(seed, member.milli_cpus);
    boost::hash_combine(seed, member.memory_bytes);
    boost::hash_combine(seed, member.eligibility.get());
    boost::hash_combine(seed, member.group);
    for (const auto& attribute : member.attributes)
      for (const auto& value : attribute.any_of) boost::hash_combine(seed, value);
  }
  return seed;
}

}  // namespace

Shape& Shapes::of(const Gang& gang) {
  const auto hash = hash_of(gang);
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at)
    if (*at->second->gang == gang) return *at->second;
  auto& shape = shapes_.emplace_back(Shape{&gang, demand_of(cluster_, gang)});
  shape.total = shape.demand.total();
  by_hash_.emplace(hash, &shape);
  return shape;
}

}  // namespace drover::placement::schedule
