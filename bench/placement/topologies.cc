#include "topologies.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/files.h"

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr int kMostNvLinks = 1'000'000;  // far beyond any machine, and no sum can overflow
constexpr int kMostNumaNode = 1'000'000;

class TopologyReader {
 public:
  TopologyReader(std::string name, std::vector<Error>& mistakes)
      : topology_{std::move(name), {}, {}}, mistakes_(mistakes) {}

  Topology read(const json& value) {
    if (!value.is_object()) {
      mistake("", "it is not an object with links");
      return topology_;
    }
    const auto before = mistakes_.size();
    read_links(value);
    if (mistakes_.size() == before) read_numa(value);
    return topology_;
  }

 private:
  void mistake(const std::string& path, std::string message) {
    mistakes_.push_back({ErrorKind::kInvalid, fmt::format("topology '{}': {}", topology_.name, message), "",
                         "/" + topology_.name + path});
  }

  void read_links(const json& value) {
    const auto found = value.find("links");
    if (found == value.end() || !found->is_array() || found->empty())
      return mistake("/links", "'links' is no matrix of NVLinks between its GPUs");
    const auto size = found->size();
    if (size > static_cast<std::size_t>(placement::kMaxDevices))
      return mistake("/links", fmt::format("it has {} GPUs, and more than {} cannot be placed", size,
                                           placement::kMaxDevices));
    for (const auto& row : *found)
      if (!row.is_array() || row.size() != size)
        return mistake("/links", fmt::format("'links' is not square: {} rows, and one of {} entries", size,
                                             row.is_array() ? row.size() : 0));
    topology_.links.assign(size, std::vector<gpu::Link>(size));
    for (std::size_t a = 0; a < size; ++a)
      for (std::size_t b = 0; b < size; ++b)
        if (!read_link(*found, a, b)) return;
  }

  bool read_link(const json& matrix, std::size_t a, std::size_t b) {
    const auto& count = matrix[a][b];
    const auto path = fmt::format("/links/{}/{}", a, b);
    if (!count.is_number_integer() || count < 0 || count > kMostNvLinks)
      mistake(path, fmt::format("'{}' between GPUs {} and {} is no number of NVLinks", count.dump(), a, b));
    else if (a == b && count != 0)
      mistake(path, fmt::format("GPU {} has NVLinks to itself", a));
    else if (b < a && count != matrix[b][a])
      mistake(path, fmt::format("'links' is not symmetric: {} from GPU {} to {}, and {} back",
                                matrix[b][a].dump(), b, a, count.dump()));
    else {
      topology_.links[a][b].nvlinks = count.get<int>();
      if (a == b) topology_.links[a][b].pcie = gpu::PcieLevel::kSameDevice;
      return true;
    }
    return false;
  }

  void read_numa(const json& value) {
    topology_.numa.resize(topology_.links.size());
    const auto found = value.find("numa");
    if (found == value.end()) return;
    if (!found->is_array() || found->size() != topology_.numa.size())
      return mistake("/numa", "'numa' does not have one NUMA node for each GPU");
    for (std::size_t i = 0; i < topology_.numa.size(); ++i) {
      const auto& node = (*found)[i];
      if (!node.is_number_integer() || node < 0 || node > kMostNumaNode)
        return mistake(fmt::format("/numa/{}", i), fmt::format("'{}' is no NUMA node", node.dump()));
      topology_.numa[i] = node.get<int>();
    }
    for (std::size_t a = 0; a < topology_.links.size(); ++a)
      for (std::size_t b = 0; b < topology_.links.size(); ++b)
        if (a != b) topology_.links[a][b].pcie = level_between(topology_.numa[a], topology_.numa[b]);
  }

  static gpu::PcieLevel level_between(std::optional<int> a, std::optional<int> b) {
    return a == b ? gpu::PcieLevel::kSameNuma : gpu::PcieLevel::kAcross;
  }

  Topology topology_;
  std::vector<Error>& mistakes_;
};

}  // namespace

Result<std::vector<Topology>> read_topologies(const std::string& file) {
  const auto what = fmt::format("'{}'", file);
  DROVER_TRY(const auto text, read_file(file));
  DROVER_TRY(const auto document, parse_json(text, what));
  if (!document.is_object() || document.empty())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' has no topologies", file),
                R"(it should read {"name": {"links": [[0, 2], [2, 0]]}})");
  std::vector<Topology> topologies;
  std::vector<Error> mistakes;
  for (const auto& [name, value] : document.items())
    topologies.push_back(TopologyReader(name, mistakes).read(value));
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, what));
  return topologies;
}

}  // namespace drover::bench
