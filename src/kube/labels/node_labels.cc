#include "kube/labels/node_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "gpu/architecture.h"
#include "kube/plugin/resources.h"

namespace drover::kube {
namespace {

constexpr std::string_view kOurs = "drover/gpu.";
constexpr std::string_view kVendors = "nvidia.com/";
constexpr std::string_view kGpus = "nvidia.com/gpu";
constexpr std::string_view kShared = "-SHARED";
constexpr std::size_t kLongestName = 63;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string first_line(const std::string& path) {
  constexpr std::uint64_t kMost = 4096;
  const auto text = read_file(path, kMost).value_or("");
  return text.substr(0, text.find('\n'));
}

/// As feature discovery spells it; Jetsons and the like, which it does not know, are "undefined" there too.
/// "ada-lovelace".
std::string family_of(const gpu::ComputeCapability& capability) {
  auto family = lower(gpu::architecture_of(capability));
  std::ranges::replace(family, ' ', '-');
  return family.empty() ? "undefined" : family;
}

/// "graphics" or "compute", where all GPUs are of one kind.
std::string_view mode_of(const NodeFacts& facts) {
  std::set<std::string> classes;
  for (const auto& device : facts.inventory.devices) {
    const auto found = facts.pci_classes.find(device.uuid);
    classes.insert(found == facts.pci_classes.end() ? "" : found->second);
  }
  if (classes == std::set<std::string>{"0x030000"}) return "graphics";
  if (classes == std::set<std::string>{"0x030200"}) return "compute";
  return "unknown";
}

/// What a hypervisor gave: NVML calls their brands so.
bool is_virtual(const gpu::Device& device) {
  constexpr std::array<std::string_view, 5> kBrands = {"vapps", "vpc", "vcs", "vws", "cloudgaming"};
  return std::ranges::find(kBrands, device.brand) != kBrands.end();
}

/// Of all GPUs that are in one, if it is the same.
std::string clique_of(const std::vector<gpu::Device>& devices) {
  std::set<std::string> cliques;
  for (const auto& device : devices)
    if (!device.clique.empty()) cliques.insert(device.clique);
  return cliques.size() == 1 ? *cliques.begin() : "";
}

/// "550.163.01" as its parts; "" for those that are not there.
std::array<std::string, 3> version_parts(std::string_view version) {
  std::array<std::string, 3> parts;
  for (auto& part : parts) {
    const auto end = std::min(version.find('.'), version.size());
    part = label_value(version.substr(0, end));
    version.remove_prefix(std::min(end + 1, version.size()));
  }
  return parts;
}

/// What a MIG device has.
std::map<std::string, std::uint64_t> amounts_of(const gpu::MigProfile& profile) {
  constexpr unsigned kBitsOfMib = 20;
  const auto& has = profile.attributes;
  return {{"memory", has.memory_bytes >> kBitsOfMib},
          {"multiprocessors", has.multiprocessors},
          {"slices.gi", profile.slices},
          {"slices.ci", profile.slices},  // its compute instance takes all of it
          {"engines.copy", has.copy_engines},
          {"engines.decoder", has.decoders},
          {"engines.encoder", has.encoders},
          {"engines.jpeg", has.jpeg_engines},
          {"engines.ofa", has.ofa_engines}};
}

std::string_view word_of(ShareWay way) {
  constexpr std::array<std::string_view, 3> kWords = {"time-slicing", "mps", "drover"};
  return kWords[static_cast<std::size_t>(way)];
}

class LabelWriter {
 public:
  LabelWriter(const NodeFacts& facts, const PluginConfig& config) : facts_(facts), config_(config) {}

  Labels write() {
    if (facts_.inventory.devices.empty()) return {};
    write_versions();
    write_node();
    write_gpus();
    write_mig();
    write_models();
    return std::move(labels_);
  }

 private:
  const std::vector<gpu::Device>& devices() const { return facts_.inventory.devices; }
  template <typename Value>
  void vendors(std::string_view name, const Value& value) {
    labels_[fmt::format("{}{}", kVendors, name)] = fmt::format("{}", value);
  }
  /// `resource` is its whole name: "nvidia.com/gpu".
  template <typename Value>
  void of(std::string_view resource, std::string_view name, const Value& value) {
    labels_[fmt::format("{}.{}", resource, name)] = fmt::format("{}", value);
  }
  template <typename Value>
  void ours(std::string_view name, const Value& value) {
    labels_[fmt::format("{}{}", kOurs, name)] = fmt::format("{}", value);
  }

  void write_versions() {
    if (const auto& version = facts_.inventory.driver_version; !version.empty()) {
      const auto [major, minor, revision] = version_parts(version);
      vendors("cuda.driver.major", major);
      vendors("cuda.driver.minor", minor);
      vendors("cuda.driver.rev", revision);
      vendors("cuda.driver-version.major", major);
      vendors("cuda.driver-version.minor", minor);
      vendors("cuda.driver-version.revision", revision);
      vendors("cuda.driver-version.full", label_value(version));
    }
    if (const auto& version = facts_.inventory.cuda_version; !version.empty()) {
      const auto [major, minor, rest] = version_parts(version);
      vendors("cuda.runtime.major", major);
      vendors("cuda.runtime.minor", minor);
      vendors("cuda.runtime-version.major", major);
      vendors("cuda.runtime-version.minor", minor);
      vendors("cuda.runtime-version.full", label_value(version));
    }
  }

  void write_node() {
    const auto machine = label_value(facts_.machine);
    vendors("gpu.machine", machine.empty() ? "unknown" : machine);
    vendors("gpu.mode", mode_of(facts_));
    vendors("mig.capable", std::ranges::any_of(devices(), [](const gpu::Device& device) {
              return device.mig != gpu::MigMode::kUnsupported;
            }));
    vendors("mps.capable", config_.shares_by(ShareWay::kMps));
    if (const auto clique = clique_of(devices()); !clique.empty()) vendors("gpu.clique", clique);
    vendors("vgpu.present", std::ranges::any_of(devices(), is_virtual));
  }

  /// A GPU that is partitioned is not shared on top of that, and steps back behind one that is whole.
  void write_gpus() {
    const auto whole = std::ranges::find_if(
        devices(), [](const gpu::Device& device) { return device.mig != gpu::MigMode::kEnabled; });
    const bool partitioned = whole == devices().end();
    const auto& first = partitioned ? devices().front() : *whole;
    const auto* share = partitioned ? nullptr : share_of(kGpus);
    write_resource(kGpus, first.model, "", std::ranges::count(devices(), first.model, &gpu::Device::model),
                   share);
    if (share != nullptr) of(kGpus, "replicas", replicas_of(first, *share));
    if (partitioned) of(kGpus, "replicas", 0);
    if (first.memory_bytes) of(kGpus, "memory", *first.memory_bytes >> 20U);
    if (const auto& capability = first.compute_capability) {
      of(kGpus, "family", family_of(*capability));
      of(kGpus, "compute.major", capability->major);
      of(kGpus, "compute.minor", capability->minor);
    }
  }

  /// With strategy "single" MIG devices are told of instead of GPUs.
  void write_mig() {
    if (config_.mig == MigStrategy::kNone) return;
    vendors("mig.strategy", config_.mig == MigStrategy::kSingle ? "single" : "mixed");
    if (!facts_.offered.trouble.empty()) return write_invalid();
    std::map<std::string, std::vector<const PluginPart*>> resources;
    for (const auto& [uuid, part] : facts_.offered.parts) resources[part.resource].push_back(&part);
    for (const auto& [resource, parts] : resources) {
      const auto& first = *parts.front();
      write_resource(resource, model_of(first.gpu), "-MIG-" + label_value(first.profile.name), parts.size(),
                     share_of(resource));
      for (const auto& [name, amount] : amounts_of(first.profile)) of(resource, name, amount);
    }
  }

  void write_invalid() {
    const auto cut = std::ranges::find(devices(), gpu::MigMode::kEnabled, &gpu::Device::mig);
    if (cut != devices().end()) write_resource(kGpus, cut->model, "-MIG-INVALID", 0, nullptr);
    of(kGpus, "replicas", 0);
    of(kGpus, "memory", 0);
  }

  /// What all resources have: devices of a model, or of a part of it.
  template <typename Count>
  void write_resource(std::string_view resource, const std::string& model, std::string suffix, Count count,
                      const ShareRule* share) {
    if (share != nullptr && share->rename.empty()) suffix += kShared;
    const auto product = label_value(model, kLongestName - std::min(kLongestName, suffix.size()));
    if (!product.empty()) of(resource, "product", product + suffix);
    of(resource, "count", count);
    of(resource, "replicas", share == nullptr ? 1 : share->replicas);
    of(resource, "sharing-strategy", share == nullptr ? "none" : word_of(share->way));
  }

  const ShareRule* share_of(std::string_view resource) const {
    const auto found = std::ranges::find(config_.shares, resource, &ShareRule::resource);
    return found == config_.shares.end() ? nullptr : &*found;
  }

  std::string model_of(const std::string& uuid) const {
    const auto found = std::ranges::find(devices(), uuid, &gpu::Device::uuid);
    return found == devices().end() ? "" : found->model;
  }

  void write_models() {
    constexpr std::string_view kModel = "model.";
    constexpr std::size_t kLongestModel = kLongestName - std::string_view("gpu.").size() - kModel.size();
    std::map<std::string, int> models;
    for (const auto& device : devices()) {
      const auto model = label_value(device.model, kLongestModel);
      ++models[model.empty() ? "unknown" : model];
    }
    ours("count", devices().size());
    ours("models", models.size());
    for (const auto& [model, count] : models) ours(std::string(kModel) + model, count);
    if (facts_.inventory.simulated) ours("simulated", true);
  }

  const NodeFacts& facts_;
  const PluginConfig& config_;
  Labels labels_;
};

}  // namespace

NodeFacts read_node_facts(const std::string& root, gpu::Inventory inventory, PluginDevices offered) {
  NodeFacts facts;
  facts.offered = std::move(offered);
  facts.machine = first_line(root + "/sys/class/dmi/id/product_name");
  for (const auto& device : inventory.devices)
    if (device.pci) {
      const auto pci_class =
          first_line(fmt::format("{}/sys/bus/pci/devices/{}/class", root, to_string(*device.pci)));
      if (!pci_class.empty()) facts.pci_classes[device.uuid] = pci_class;
    }
  facts.inventory = std::move(inventory);
  return facts;
}

Labels node_labels(const NodeFacts& facts, const PluginConfig& config) {
  return LabelWriter(facts, config).write();
}

std::string label_value(std::string_view text, std::size_t longest) {
  std::string value;
  bool space = false;
  for (const char c : text) {
    if (is_plain(c) || c == '-' || c == '_' || c == '.') {
      if (space && !value.empty()) value += '-';
      value += c;
      space = false;
    }
    space = space || c == ' ' || c == '\t';
  }
  value.erase(0, static_cast<std::size_t>(std::ranges::find_if(value, is_plain) - value.begin()));
  value.resize(std::min(value.size(), longest));
  while (!value.empty() && !is_plain(value.back())) value.pop_back();
  return value;
}

}  // namespace drover::kube
