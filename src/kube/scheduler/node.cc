#include "kube/scheduler/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shorten.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

std::string named(const char* kind, const json& object) {
  return fmt::format("the {} '{}'", kind, shortened(key_of(object)));
}

}  // namespace

Result<Node> read_node(const json& object) {
  FieldReader reader;
  Node node;
  const auto& metadata = reader.object(object, "metadata");
  const auto& spec = reader.object(object, "spec");
  const auto& status = reader.object(object, "status");
  node.name = reader.name(object);
  node.labels = reader.text_map(metadata, "labels");
  Taints taints;
  for (const auto& taint : reader.objects(spec, "taints"))
    taints.push_back({reader.text(taint, "key"), reader.text(taint, "value"), reader.text(taint, "effect")});
  node.taints = std::make_shared<const Taints>(std::move(taints));
  node.unschedulable = reader.flag(spec, "unschedulable");
  const auto allocatable = reader.quantities(status, "allocatable");
  node.allocatable = whole(allocatable);
  if (const auto pods = allocatable.find("pods"); pods != allocatable.end())
    node.most_pods = whole({{"memory", pods->second}}).memory;
  for (auto& feature : reader.texts(status, "declaredFeatures")) node.features.insert(std::move(feature));
  DROVER_CHECK_OK(reader.status(named("node", object)));
  return node;
}

Result<CsiDrivers> read_csi_node(const json& object) {
  FieldReader reader;
  CsiDrivers read;
  read.node_name = reader.name(object);
  for (const auto& driver : reader.objects(reader.object(object, "spec"), "drivers"))
    read.limited.emplace(reader.text(driver, "name"),
                         reader.number(reader.object(driver, "allocatable"), "count").has_value());
  DROVER_CHECK_OK(reader.status(named("CSINode", object)));
  return read;
}

}  // namespace drover::kube::scheduler
