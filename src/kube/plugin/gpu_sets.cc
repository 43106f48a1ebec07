#include "kube/plugin/gpu_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/ids.h"
#include "cdi/write.h"

namespace drover::kube {
namespace {

std::string text_of(const GpuSet& gpus) {
  return fmt::format("{}", fmt::join(gpus, ","));
}

/// In a file's and in a device's name there is no place for the UUIDs of all GPUs of a large machine.
std::string digest_of(const GpuSet& gpus) {
  return sha256_hex(text_of(gpus));
}

}  // namespace

GpuSet gpu_set(const std::vector<std::string>& device_ids) {
  GpuSet gpus;
  for (const auto& id : device_ids) gpus.emplace(uuid_in(id));
  return gpus;
}

std::string set_device(const GpuSet& gpus) {
  return fmt::format("{}={}", kPluginSetKind, digest_of(gpus));
}

cdi::Specification set_specification(const std::set<GpuSet>& sets) {
  cdi::Specification made;
  made.kind = kPluginSetKind;
  for (const auto& gpus : sets) {
    cdi::Edits edits;
    edits.environment = {"NVIDIA_VISIBLE_DEVICES=" + text_of(gpus)};
    made.devices.push_back({digest_of(gpus), {}, std::move(edits)});
  }
  made.version = cdi::required_version(made);
  return made;
}

std::set<GpuSet> sets_of(const std::vector<ContainerUse>& containers,
                         const std::vector<OfferedResource>& resources) {
  std::set<GpuSet> sets;
  for (const auto& container : containers) {
    std::map<std::string, GpuSet> given;
    for (const auto& use : container.devices)
      if (std::ranges::find(resources, use.resource, &OfferedResource::name) != resources.end())
        given[use.resource].merge(gpu_set(use.device_ids));
    for (auto& [resource, gpus] : given)
      if (!gpus.empty()) sets.insert(std::move(gpus));
  }
  return sets;
}

GpuSets::GpuSets(const std::string& folder) : path_(folder + "/k8s.device-plugin.nvidia.com-set.json") {}

Status GpuSets::add(const GpuSet& gpus, Clock::time_point now) {
  if (gpus.empty()) return {};
  const std::lock_guard lock(mutex_);
  needed_[gpus] = now;
  return write();
}

Status GpuSets::saw(const std::set<GpuSet>& sets, Clock::time_point asked) {
  const std::lock_guard lock(mutex_);
  for (const auto& gpus : sets) {
    auto& when = needed_[gpus];
    when = std::max(when, asked);
  }
  std::erase_if(needed_, [&](const auto& one) { return asked - one.second > kPatience; });
  return write();
}

Status GpuSets::write() const {
  if (needed_.empty()) {  // a specification without a device is none
    std::error_code error;
    std::filesystem::remove(path_, error);
    if (error) return fail_errno(fmt::format("Failed to remove '{}'", path_), error.value());
    return {};
  }
  std::set<GpuSet> sets;
  for (const auto& [gpus, when] : needed_) sets.insert(gpus);
  const auto text = cdi::write_specification(set_specification(sets), cdi::format_of_file(path_));
  if (read_file(path_) == text) return {};
  return write_file(path_, text);
}

}  // namespace drover::kube
