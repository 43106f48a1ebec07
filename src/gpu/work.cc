#include "gpu/work.h"

#include <algorithm>

namespace drover::gpu {
namespace {

bool works(const Reading& percent) {
  return percent.value_or(0) > 0;
}

/// Whether it is told of every process what it did.
bool tells_of_all(const GpuUsage& usage) {
  return std::ranges::all_of(usage.processes,
                             [](const auto& process) { return process.sm_percent.has_value(); });
}

}  // namespace

std::set<std::string> who_works(const std::map<std::string, GpuUsage>& usage, const GpuHolders& holders,
                                const std::function<std::string(std::uint32_t pid)>& owner_of) {
  std::set<std::string> busy;
  for (const auto& [uuid, who] : holders) {
    const auto seen = usage.find(uuid);
    const auto now = seen == usage.end() ? GpuUsage{} : seen->second;
    const bool alone = who.size() == 1;
    const bool told = now.answers && (alone ? now.gpu_percent.has_value() : owner_of && tells_of_all(now));
    std::set<std::string> workers;
    for (const auto& process : now.processes)
      if (works(process.sm_percent) || works(process.encoder_percent) || works(process.decoder_percent))
        workers.insert(owner_of ? owner_of(process.pid) : "");
    if (workers.empty() && works(now.gpu_percent)) workers.insert("");
    const bool somebody = workers.erase("") > 0;
    if (!told || somebody || (alone && works(now.gpu_percent))) workers.insert(who.begin(), who.end());
    busy.merge(workers);
  }
  return busy;
}

}  // namespace drover::gpu
