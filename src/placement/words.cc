#include "placement/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace drover::placement {
namespace {

struct LevelWords {
  const char* wanted;  ///< devices that are to be so near
  const char* found;   ///< devices that are joined so
};

LevelWords words_of(gpu::PcieLevel level) {
  switch (level) {
    case gpu::PcieLevel::kSameDevice:
    case gpu::PcieLevel::kSameBoard:
      return {"on one board", "on one board"};
    case gpu::PcieLevel::kSwitch:
      return {"behind one PCIe switch", "behind one PCIe switch"};
    case gpu::PcieLevel::kSwitches:
      return {"joined by PCIe switches", "across PCIe switches"};
    case gpu::PcieLevel::kHostBridge:
      return {"behind one PCIe host bridge", "across the host bridge"};
    case gpu::PcieLevel::kSameNuma:
      return {"on one NUMA node", "across host bridges"};
    case gpu::PcieLevel::kAcross:
      return {"joined over PCIe", "across sockets"};
    case gpu::PcieLevel::kUnknown:
      break;
  }
  return {"", "joined in a way that is not known"};
}

}  // namespace

std::string gpus_text(std::int64_t count) {
  return count == 1 ? "1 GPU" : fmt::format("{} GPUs", count);
}
std::string are(std::int64_t count) {
  return count == 1 ? "is" : "are";
}
std::string cpus_text(std::int64_t milli) {
  return fmt::format("{:g}", static_cast<double>(milli) / 1000);
}
std::string milli_text(std::int64_t milli) {
  return fmt::format("{:g}", static_cast<double>(milli) / 1000);
}

std::string list_text(const std::vector<std::string>& words, const char* word) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? fmt::format(" {} ", word) : ", ") + words[i];
  return text;
}
std::string or_text(const std::vector<std::string>& words) {
  return list_text(words, "or");
}

std::string interconnect_text(const Interconnect& interconnect) {
  const auto nvlinks = interconnect.min_nvlinks;
  std::string text;
  if (nvlinks > 0) text = nvlinks == 1 ? "joined by NVLink" : fmt::format("joined by {} NVLinks", nvlinks);
  if (interconnect.max_pcie == gpu::PcieLevel::kUnknown) return text;
  return text + (text.empty() ? "" : " or ") + words_of(interconnect.max_pcie).wanted;
}

std::string capabilities_text(const CapabilitySets& capabilities) {
  std::vector<std::string> sets;
  for (const auto& set : capabilities.sets) {
    std::vector<std::string> all;
    for (const auto& capability : set)
      all.push_back(capability == gpu::ComputeCapability()
                        ? "an unknown one"
                        : fmt::format("{}.{}", capability.major, capability.minor));
    sets.push_back(list_text(all, "and"));
  }
  return fmt::format("of compute capability {}", fmt::join(sets, ", or of "));
}

std::string link_text(const gpu::Link& link) {
  if (link.nvlinks > 0)
    return link.nvlinks == 1 ? "over 1 NVLink" : fmt::format("over {} NVLinks", link.nvlinks);
  return words_of(link.pcie).found;
}

}  // namespace drover::placement
