#include "sim/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace drover::sim {
namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

Settings settings_from_environment(const std::filesystem::path& library_file) {
  Settings settings;
  if (const auto profile = environment("DROVER_SIM_PROFILE")) {
    settings.profile = *profile;
  } else {
    settings.profile = library_file.parent_path().parent_path() / "share/drover-sim/profile.yaml";
    settings.devices = "/dev";
  }
  if (const auto devices = environment("DROVER_SIM_DEV")) settings.devices = *devices;
  settings.faults = environment("DROVER_SIM_FAULTS").value_or(settings.profile.parent_path() / "faults.yaml");
  settings.mig = environment("DROVER_SIM_MIG").value_or(settings.faults.parent_path() / "mig.yaml");
  settings.live = environment("DROVER_SIM_LIVE").value_or(settings.faults.parent_path() / "live");
  if (const auto group = environment("DROVER_SIM_CGROUP")) settings.group = *group;
  settings.verbose = environment("DROVER_SIM_VERBOSE").has_value();
  return settings;
}

bool may_open(const std::filesystem::path& node) {
  const int fd = ::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno == ENXIO || errno == ENODEV || errno == EIO;
  ::close(fd);
  return true;
}

Result<std::shared_ptr<const Machine>> Machine::open(const Settings& settings) {
  DROVER_TRY(auto profile, load_profile(settings.profile));
  std::vector<std::size_t> visible;
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    const auto node = "nvidia" + std::to_string(profile.gpus[i].minor);
    if (!settings.devices || may_open(*settings.devices / node)) visible.push_back(i);
  }
  return std::make_shared<const Machine>(std::move(profile), visible, settings);
}

Machine::Machine(Profile profile, const std::vector<std::size_t>& visible, const Settings& settings)
    : profile_(std::move(profile)),
      faults_(std::make_unique<FaultFile>(settings.faults, profile_, settings.verbose)),
      live_(settings.live, profile_),
      limits_(settings.live),
      plays_groups_(settings.group.has_value()),
      groups_(own_groups(settings.group)),
      mig_(std::make_unique<MigFile>(settings.mig, profile_, settings.verbose)),
      mig_handles_(std::make_unique<MigHandles>()) {
  for (const auto position : visible)
    devices_.push_back(std::make_unique<nvmlDevice_st>(nvmlDevice_st{position, &profile_.gpus[position]}));
}

bool Machine::limits_memory() const {
  constexpr int kFirst = 615;
  return std::atoi(profile_.driver_version.c_str()) >= kFirst;
}

std::vector<nvmlDevice_st*> Machine::listed() const {
  const auto faults = faults_->current();
  std::vector<nvmlDevice_st*> listed;
  for (const auto& device : devices_)
    if (!(*faults)[device->position].absent) listed.push_back(device.get());
  return listed;
}

unsigned int Machine::index_of(const nvmlDevice_st& device) const {
  const auto listed = this->listed();
  return static_cast<unsigned int>(std::ranges::find(listed, &device) - listed.begin());
}

nvmlDevice_st* Machine::at(std::size_t position) const {
  for (const auto& device : devices_)
    if (device->position == position) return device.get();
  return nullptr;
}

nvmlDevice_st* Machine::find(nvmlDevice_t handle) const {
  for (const auto& device : devices_)
    if (device.get() == handle) return device.get();
  return nullptr;
}

}  // namespace drover::sim
