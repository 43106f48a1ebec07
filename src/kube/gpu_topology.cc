#include "kube/gpu_topology.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/decode.h"
#include "base/json_text.h"
#include "kube/scheduler/fields.h"
#include "placement/wiring.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMostGpus = placement::kMaxDevices;
constexpr std::string_view kWhat = "the annotation of GPUs";

json device_json(const gpu::Device& device) {
  json written{{"uuid", device.uuid}, {"model", device.model}};
  if (device.memory_bytes) written["memory"] = *device.memory_bytes;
  if (const auto& capability = device.compute_capability)
    written["capability"] = {capability->major, capability->minor};
  if (device.ecc) written["ecc"] = *device.ecc;
  if (device.numa_node) written["numa"] = *device.numa_node;
  if (!gpu::why_withheld(device).empty()) written["withheld"] = gpu::why_withheld(device);
  return written;
}

class TopologyReader {
 public:
  explicit TopologyReader(const json& given) : given_(given) {}

  Result<gpu::Inventory> read() {
    gpu::Inventory inventory;
    inventory.driver_version = reader_.text(given_, "driver");
    for (const auto& gpu : reader_.objects(given_, "gpus")) {
      if (inventory.devices.size() == kMostGpus) {
        reader_.mistake(fmt::format("there are more than {} GPUs", kMostGpus));
        break;
      }
      inventory.devices.push_back(device(gpu, static_cast<int>(inventory.devices.size())));
    }
    read_links(inventory);
    DROVER_CHECK_OK(reader_.status(kWhat));
    return inventory;
  }

 private:
  gpu::Device device(const json& given, int index) {
    gpu::Device device{
        .uuid = reader_.text(given, "uuid"), .index = index, .model = reader_.text(given, "model")};
    if (device.uuid.empty() || !uuids_.insert(device.uuid).second)
      reader_.mistake(fmt::format("GPU {} has no UUID of its own", index));
    if (const auto memory = reader_.number(given, "memory"))
      device.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(*memory, 0));
    const auto& capability = reader_.field(given, "capability");
    if (capability.is_array() && capability.size() == 2)
      device.compute_capability = gpu::ComputeCapability{number(capability[0]), number(capability[1])};
    if (const auto& ecc = reader_.field(given, "ecc"); ecc.is_boolean()) device.ecc = ecc.get<bool>();
    if (const auto numa = reader_.number(given, "numa"))
      if (*numa >= 0 && *numa < std::numeric_limits<int>::max()) device.numa_node = static_cast<int>(*numa);
    device.unhealthy = reader_.text(given, "withheld");
    return device;
  }

  int number(const json& value) {
    if (value.is_number_integer() && value >= 0 && value <= std::numeric_limits<int>::max())
      return value.get<int>();
    reader_.mistake("there is something else where a number is expected");
    return 0;
  }

  void read_links(gpu::Inventory& inventory) {
    const auto count = inventory.devices.size();
    inventory.links.assign(count, std::vector<gpu::Link>(count, {0, gpu::PcieLevel::kSameDevice}));
    const auto& rows = reader_.field(given_, "links");
    if (count > 0 && (!rows.is_array() || rows.size() != count))
      return reader_.mistake("'links' has not a row for each GPU");
    for (std::size_t i = 0; i < count; ++i) {
      if (!rows[i].is_array() || rows[i].size() != i)
        return reader_.mistake(fmt::format("row {} of 'links' has not a pair for each GPU before it", i));
      for (std::size_t j = 0; j < i; ++j) inventory.links[i][j] = inventory.links[j][i] = link(rows[i][j]);
    }
  }

  gpu::Link link(const json& pair) {
    if (!pair.is_array() || pair.size() != 2) {
      reader_.mistake("a pair in 'links' is not two numbers");
      return {};
    }
    const int level = number(pair[1]);
    if (level > static_cast<int>(gpu::PcieLevel::kUnknown))
      reader_.mistake("'links' has an unknown PCIe level");
    return {number(pair[0]),
            static_cast<gpu::PcieLevel>(std::min(level, static_cast<int>(gpu::PcieLevel::kUnknown)))};
  }

  const json& given_;
  scheduler::FieldReader reader_;
  std::set<std::string> uuids_;
};

}  // namespace

bool is_about_use(std::string_view withheld) {
  return withheld == kInUseByClaim || withheld == kUsageUnknown || withheld.starts_with(kInUseAs);
}

std::string write_topology(const gpu::Inventory& inventory) {
  json gpus = json::array();
  json links = json::array();
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    gpus.push_back(device_json(inventory.devices[i]));
    auto& row = links.emplace_back(json::array());
    for (std::size_t j = 0; j < i; ++j) {
      const auto link = i < inventory.links.size() ? inventory.links[i][j] : gpu::Link{};
      row.push_back({link.nvlinks, static_cast<int>(link.pcie)});
    }
  }
  return to_text(
      json{{"driver", inventory.driver_version}, {"gpus", std::move(gpus)}, {"links", std::move(links)}});
}

Result<gpu::Inventory> read_topology(std::string_view text) {
  DROVER_TRY(const auto given, parse_json(text, kWhat));
  if (!given.is_object()) return fail(ErrorKind::kInvalid, fmt::format("{} is no object", kWhat));
  return TopologyReader(given).read();
}

}  // namespace drover::kube
