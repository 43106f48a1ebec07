#include "trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "table.h"

namespace drover::bench {
namespace {

constexpr std::int64_t kMaxAmount = 1'000'000'000'000;

Status read_nodes(const Table& table, Trace& trace) {
  std::map<std::string, int> models;
  std::set<std::string> names;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    TraceNode node;
    DROVER_TRY(node.name, table.text(row, "sn"));
    if (node.name.empty() || !names.insert(node.name).second)
      return table.wrong(row, "sn", fmt::format("'{}' is empty or not the first of its name", node.name));
    DROVER_TRY(node.milli_cpus, table.number(row, "cpu_milli", kMaxAmount));
    DROVER_TRY(node.memory_mib, table.number(row, "memory_mib", kMaxAmount));
    DROVER_TRY(const auto gpus, table.number(row, "gpu", kMaxGpus));
    node.gpus = static_cast<int>(gpus);
    DROVER_TRY(const auto model, table.text(row, "model"));
    const auto [found, added] = models.try_emplace(model, static_cast<int>(models.size()));
    if (models.size() > kMaxModels)
      return table.wrong(row, "model", fmt::format("there are more than {} models", kMaxModels));
    if (added) trace.models.push_back(model);
    node.model = found->second;
    trace.nodes.push_back(std::move(node));
  }
  return {};
}

Result<PodShape> read_shape(const Table& table, std::size_t row, const Trace& trace) {
  PodShape shape;
  DROVER_TRY(shape.milli_cpus, table.number(row, "cpu_milli", kMaxAmount));
  DROVER_TRY(shape.memory_mib, table.number(row, "memory_mib", kMaxAmount));
  DROVER_TRY(const auto gpus, table.number(row, "num_gpu", kMaxGpus));
  DROVER_TRY(const auto milli, table.number(row, "gpu_milli", kGpuMilli));
  shape.gpus = static_cast<int>(gpus);
  shape.gpu_milli = static_cast<int>(milli);
  if (gpus == 0 && milli != 0) return table.wrong(row, "gpu_milli", "a pod without GPUs has a share of one");
  if (gpus > 0 && milli == 0) return table.wrong(row, "gpu_milli", "a pod with GPUs has no share of them");
  if (gpus > 1 && milli != kGpuMilli)
    return table.wrong(row, "gpu_milli", "a pod with several GPUs has less than the whole of them");
  if (!table.has("gpu_spec")) return shape;
  DROVER_TRY(const auto allowed, table.text(row, "gpu_spec"));
  if (allowed.empty()) return shape;
  for (const auto& name : split(allowed, '|')) {
    const auto found = std::ranges::find(trace.models, name);
    if (found == trace.models.end())
      return table.wrong(row, "gpu_spec", fmt::format("no node has the model '{}'", name));
    shape.models |= std::uint32_t{1} << (found - trace.models.begin());
  }
  return shape;
}

Status read_pods(const Table& table, Trace& trace) {
  std::map<std::string, PodShape> pods;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    DROVER_TRY(const auto name, table.text(row, "name"));
    DROVER_TRY(const auto shape, read_shape(table, row, trace));
    if (!pods.emplace(name, shape).second)
      return table.wrong(row, "name", fmt::format("'{}' is not the first of its name", name));
  }
  std::set<PodShape> shapes;
  for (const auto& [name, shape] : pods) shapes.insert(shape);
  trace.shapes.assign(shapes.begin(), shapes.end());
  for (const auto& [name, shape] : pods)
    trace.pods.push_back(static_cast<int>(std::distance(shapes.begin(), shapes.find(shape))));
  return {};
}

}  // namespace

std::int64_t Trace::capacity() const {
  return std::transform_reduce(nodes.begin(), nodes.end(), std::int64_t{0}, std::plus<>(),
                               [](const TraceNode& node) { return std::int64_t{node.gpus} * kGpuMilli; });
}

std::vector<double> Trace::frequencies() const {
  std::vector<double> parts(shapes.size(), 0);
  for (const auto pod : pods) parts[static_cast<std::size_t>(pod)] += 1.0 / static_cast<double>(pods.size());
  return parts;
}

Trace without_shares(const Trace& trace) {
  auto whole = trace;
  std::erase_if(whole.pods,
                [&](int shape) { return trace.shapes[static_cast<std::size_t>(shape)].shares(); });
  return whole;
}

Result<Trace> read_trace(const std::string& folder, const std::string& list) {
  Trace trace;
  DROVER_TRY(const auto nodes, Table::read(folder + "/openb_node_list_gpu_node.csv"));
  DROVER_CHECK_OK(read_nodes(nodes, trace));
  if (trace.capacity() == 0)
    return fail(ErrorKind::kInvalid, "no node has a GPU", "", folder + "/openb_node_list_gpu_node.csv");
  DROVER_TRY(const auto pods, Table::read(fmt::format("{}/openb_pod_list_{}.csv", folder, list)));
  DROVER_CHECK_OK(read_pods(pods, trace));
  return trace;
}

}  // namespace drover::bench
