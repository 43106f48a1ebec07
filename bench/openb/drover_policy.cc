#include "drover_policy.h"

#include <fmt/format.h>

#include <stdexcept>
#include <unordered_map>

#include "placement/cluster.h"

namespace drover::bench {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

std::string name_of(std::size_t node) {
  return fmt::format("node-{}", node);
}
std::string uuid_of(std::size_t node, int gpu) {
  return fmt::format("GPU-{}-{}", node, gpu);
}

placement::Node make_node(const TraceNode& traced, const std::string& model, std::size_t number) {
  placement::Node node;
  node.name = name_of(number);
  node.milli_cpus = traced.milli_cpus;
  node.memory_bytes = static_cast<std::uint64_t>(traced.memory_mib) * kMib;
  for (int i = 0; i < traced.gpus; ++i) {
    gpu::Device device;
    device.uuid = uuid_of(number, i);
    device.index = i;
    device.model = model;
    node.inventory.devices.push_back(device);
  }
  const auto count = static_cast<std::size_t>(traced.gpus);
  node.inventory.links.assign(count, std::vector<gpu::Link>(count));
  return node;
}

placement::Request make_request(const PodShape& shape, const std::vector<std::string>& models) {
  placement::Request request;
  request.milli_cpus = shape.milli_cpus;
  request.memory_bytes = static_cast<std::uint64_t>(shape.memory_mib) * kMib;
  if (shape.gpus == 0) return request;
  placement::DeviceClaim claim;
  claim.count = shape.gpus;
  for (std::size_t i = 0; i < models.size(); ++i)
    if (shape.models != 0 && shape.allows(static_cast<int>(i))) claim.filter.models.push_back(models[i]);
  request.gpus.push_back(claim);
  request.share.milli = shape.gpu_milli;
  return request;
}

class Drover : public Policy {
 public:
  Drover(const Trace& trace, const Arrivals& arrivals, bool told)
      : cluster_(placement::NodePolicy::kFragmentation) {
    for (std::size_t i = 0; i < arrivals.nodes.size(); ++i) {
      const auto& node = trace.nodes[static_cast<std::size_t>(arrivals.nodes[i])];
      cluster_.set_node(make_node(node, trace.models[static_cast<std::size_t>(node.model)], i));
      numbers_[name_of(i)] = static_cast<int>(i);
      for (int gpu = 0; gpu < node.gpus; ++gpu) indices_[uuid_of(i, gpu)] = gpu;
    }
    for (const auto& shape : trace.shapes) requests_.push_back(make_request(shape, trace.models));
    if (!told) return;
    const auto frequencies = trace.frequencies();
    std::vector<placement::TypicalRequest> mix;
    for (std::size_t i = 0; i < requests_.size(); ++i) mix.push_back({requests_[i], frequencies[i]});
    cluster_.set_workload(std::move(mix));
  }

  std::optional<Place> place(const std::vector<FreeNode>&, int pod) override {
    const auto& request = requests_[static_cast<std::size_t>(pod)];
    const auto decision = cluster_.try_place(request);
    if (!decision) return std::nullopt;
    const auto taken = cluster_.allocate(fmt::format("pod-{}", ++pods_), request, *decision);
    if (!taken) throw std::logic_error(to_string(taken.error()));
    return Place{numbers_.at(decision->node),
                 decision->gpus.empty() ? -1 : indices_.at(decision->gpus.front().uuid)};
  }

 private:
  placement::Cluster cluster_;
  std::vector<placement::Request> requests_;  ///< [shape]
  std::unordered_map<std::string, int> numbers_, indices_;
  int pods_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_drover(const Trace& trace, const Arrivals& arrivals, std::uint64_t) {
  return std::make_unique<Drover>(trace, arrivals, true);
}

std::unique_ptr<Policy> make_untold_drover(const Trace& trace, const Arrivals& arrivals, std::uint64_t) {
  return std::make_unique<Drover>(trace, arrivals, false);
}

}  // namespace drover::bench
