#include "gpus_here.h"

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/native/measured.h"
#include "api/native/views.h"
#include "gpu/usage_sampler.h"
#include "hardware.h"
#include "metrics/processes.h"

namespace drover {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kBetweenDiscoveries{30};
constexpr std::chrono::milliseconds kFresh{100};

class GpusHere {
 public:
  static Result<std::shared_ptr<GpusHere>> open() {
    DROVER_TRY(auto hardware, Hardware::open({.state = "/", .volume = false}));
    return std::make_shared<GpusHere>(std::make_shared<const Hardware>(std::move(hardware)));
  }

  explicit GpusHere(std::shared_ptr<const Hardware> hardware)
      : hardware_(std::move(hardware)),
        sampler_([hardware = hardware_] { return hardware->shared_nvml(); }, {.fresh = kFresh}) {}

  json look() {
    const auto now = std::chrono::steady_clock::now();
    if (!discovered_ || now - *discovered_ >= kBetweenDiscoveries) {
      machine_.inventory = hardware_->discover();
      discovered_ = now;
    }
    const auto nobody = [](std::string_view) { return metrics::Owner{}; };
    api::Measured measured{{.health = gpu::Health(gpu::XidPolicy())}, {}};
    measured.machine.usage = sampler_.sample(machine_.inventory.devices);
    measured.machine.processes = metrics::read_processes("/proc", measured.machine.usage, nobody);
    auto shown = api::view_gpus({machine_}, {});
    for (auto& gpu : shown["gpus"]) gpu["usage"] = api::view_usage(measured, gpu.value("uuid", ""));
    return shown;
  }

 private:
  std::shared_ptr<const Hardware> hardware_;
  gpu::UsageSampler sampler_;
  engine::Views::Machine machine_;
  std::optional<std::chrono::steady_clock::time_point> discovered_;
};

}  // namespace

std::function<Result<json>()> gpus_here() {
  return [kept = std::shared_ptr<GpusHere>()]() mutable -> Result<json> {
    if (!kept) {
      DROVER_TRY(kept, GpusHere::open());
    }
    return kept->look();
  };
}

}  // namespace drover
