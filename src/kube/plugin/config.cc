#include "kube/plugin/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/decode.h"
#include "base/units.h"
#include "base/yaml.h"
#include "kube/dra/quantity.h"
#include "workload/resources.h"

namespace drover::kube {
namespace {

constexpr int kMostMpsClients = 48;
constexpr int kAllOfTime = 100;  ///< percent
/// By the value of ShareWay.
constexpr std::array<std::string_view, 3> kShareWayNames = {"timeSlicing", "mps", "drover"};
constexpr std::size_t kLongestLabel = 63;

/// As Kubernetes writes it, or else as Drover does elsewhere: "8G" is of powers of ten here.
Result<std::uint64_t> memory_of(std::string_view text) {
  if (const auto quantity = dra::parse_quantity(text)) return static_cast<std::uint64_t>(*quantity);
  return parse_bytes(text);
}
constexpr std::size_t kLongestDomain = 253;
constexpr std::array<std::string_view, 4> kStrategyWords = {"envvar", "volume-mounts", "cdi-annotations",
                                                            "cdi-cri"};
/// Flags of NVIDIA's that say where its own parts lie, or what Drover finds out by itself.
constexpr std::array kForeignFlags = {
    "failOnInitError", "mpsRoot",      "nvidiaDriverRoot",  "nvidiaDevRoot",           "gdrcopyEnabled",
    "gdsEnabled",      "mofedEnabled", "useNodeFeatureAPI", "deviceDiscoveryStrategy", "driverRootCtrPath"};
constexpr std::array kForeignPluginFlags = {"nvidiaCTKPath", "containerDriverRoot"};

bool is_name(std::string_view text, std::size_t longest, std::string_view between) {
  const auto alphanumeric = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !text.empty() && text.size() <= longest && alphanumeric(text.front()) && alphanumeric(text.back()) &&
         std::ranges::all_of(
             text, [&](char c) { return alphanumeric(c) || between.find(c) != std::string_view::npos; });
}

class Reader {
 public:
  explicit Reader(std::string_view what) : what_(what) {}

  void read(const nlohmann::json& document) {
    Decoder root(document, errors_);
    const auto version = root.string("version");
    if (!version || *version != "v1") root.mistake("version", "must be 'v1'");
    if (auto flags = root.object("flags")) read_flags(*flags);
    if (auto resources = root.object("resources")) read_resources(*resources);
    if (auto sharing = root.object("sharing")) read_sharing(*sharing);
    ignore(root, "", "imex");
    root.finish();
  }

  Result<LoadedConfig> result() && {
    if (!errors_.empty()) return Failure(join_mistakes(errors_, what_));
    return std::move(loaded_);
  }

 private:
  PluginConfig& config() { return loaded_.config; }

  void ignore(Decoder& decoder, const std::string& path, const std::string& name) {
    if (decoder.value(name) != nullptr)
      loaded_.ignored.push_back(fmt::format("{}: '{}/{}' has no effect", what_, path, name));
  }

  void read_flags(Decoder& flags) {
    constexpr std::array<std::string_view, 3> kMig = {"none", "single", "mixed"};
    if (const auto chosen = flags.choice("migStrategy", kMig))
      config().mig = static_cast<MigStrategy>(*chosen);
    for (const auto* name : kForeignFlags) ignore(flags, "/flags", name);
    ignore(flags, "/flags", "gfd");
    if (auto plugin = flags.object("plugin")) read_plugin_flags(*plugin);
    flags.finish();
  }

  void read_plugin_flags(Decoder& plugin) {
    config().pass_device_specs = plugin.boolean("passDeviceSpecs");
    if (const auto words = plugin.strings("deviceListStrategy")) read_strategies(plugin, *words);
    constexpr std::array<std::string_view, 2> kIds = {"uuid", "index"};
    if (const auto chosen = plugin.choice("deviceIDStrategy", kIds)) config().ids_are_indices = *chosen == 1;
    if (const auto prefix = plugin.string("cdiAnnotationPrefix")) config().cdi_annotation_prefix = *prefix;
    constexpr std::array<std::string_view, 2> kPolicies = {"distributed", "packed"};
    if (const auto chosen = plugin.choice("sharedDevicesAllocationPolicy", kPolicies))
      config().shared_policy = *chosen == 1 ? SharedPolicy::kPacked : SharedPolicy::kDistributed;
    for (const auto* name : kForeignPluginFlags) ignore(plugin, "/flags/plugin", name);
    plugin.finish();
  }

  void read_strategies(Decoder& plugin, const std::vector<std::string>& words) {
    config().strategies.clear();
    for (const auto& word : words) {
      const auto found = std::ranges::find(kStrategyWords, word);
      if (found == kStrategyWords.end())
        plugin.mistake("deviceListStrategy", fmt::format("does not know '{}'", word),
                       "use envvar, volume-mounts, cdi-annotations or cdi-cri");
      else
        config().strategies.push_back(static_cast<ListStrategy>(found - kStrategyWords.begin()));
    }
  }

  std::string read_resource_name(Decoder& decoder, const std::string& field) {
    auto name = decoder.string(field).value_or("");
    if (!name.empty() && name.find('/') == std::string::npos) name = "nvidia.com/" + name;
    if (!name.empty() && !is_resource_name(name))
      decoder.mistake(field, fmt::format("'{}' is no name of a resource", name),
                      "a domain, '/', and at most 63 letters, digits, '-', '_' and '.'");
    return name;
  }

  void read_resources(Decoder& resources) {
    std::vector<ResourceRule> rules;
    for (auto& gpu : resources.objects("gpus")) {
      ResourceRule rule{read_resource_name(gpu, "name"), gpu.string("pattern").value_or("")};
      if (rule.name.empty()) gpu.mistake("name", "is missing");
      if (rule.pattern.empty()) gpu.mistake("pattern", "is missing", "'*' stands for every model");
      gpu.finish();
      rules.push_back(std::move(rule));
    }
    ignore(resources, "/resources", "mig");
    resources.finish();
    if (!rules.empty()) config().resources = std::move(rules);
  }

  void read_sharing(Decoder& sharing) {
    bool chosen = false;
    for (std::size_t i = 0; i < kShareWayNames.size(); ++i) {
      const std::string name(kShareWayNames[i]);
      auto shares = sharing.object(name);
      if (!shares) continue;
      if (std::exchange(chosen, true))
        sharing.mistake(name, "cannot stand beside another way to share", "choose one of them");
      read_shares(*shares, static_cast<ShareWay>(i));
    }
    sharing.finish();
  }

  void read_shares(Decoder& sharing, ShareWay way) {
    const bool is_held = way != ShareWay::kTimeSlices;
    // A program is a client of one daemon, and a container has one page of limits.
    config().refuse_several_shares = sharing.boolean("failRequestsGreaterThanOne").value_or(is_held);
    if (is_held && !config().refuse_several_shares)
      sharing.mistake("failRequestsGreaterThanOne", "must be true here",
                      "leave it out: a container has one replica at most");
    if (is_held && config().mig != MigStrategy::kNone)
      sharing.mistake("resources", "cannot be shared so with migStrategy",
                      "parts of a GPU in MIG mode are not shared any further");
    if (way == ShareWay::kGuard && !brings_guard())
      sharing.mistake("resources", "needs deviceListStrategy cdi-cri or cdi-annotations alone",
                      "what else brings the driver's files brings them without the guard");
    const bool rename = sharing.boolean("renameByDefault").value_or(false);
    for (auto& resource : sharing.objects("resources")) read_share(resource, rename, way);
    sharing.finish();
  }

  bool brings_guard() {
    return std::ranges::all_of(config().strategies, [](ListStrategy strategy) {
      return strategy == ListStrategy::kCdiCri || strategy == ListStrategy::kCdiAnnotations;
    });
  }

  void read_share(Decoder& decoder, bool rename_by_default, ShareWay way) {
    ShareRule rule;
    rule.way = way;
    rule.resource = read_resource_name(decoder, "name");
    const auto& names = config().resources;
    if (rule.resource.empty())
      decoder.mistake("name", "is missing");
    else if (std::ranges::find(names, rule.resource, &ResourceRule::name) == names.end())
      decoder.mistake("name", fmt::format("'{}' is none of the resources", rule.resource));
    // NVIDIA's limit of the clients of a daemon.
    const auto most = way == ShareWay::kMps ? kMostMpsClients : kMostReplicas;
    const auto replicas = decoder.integer("replicas", 2, most);
    rule.replicas = static_cast<int>(replicas.value_or(2));
    if (way == ShareWay::kGuard) read_amounts(decoder, rule, replicas.has_value());
    rule.rename = read_resource_name(decoder, "rename");
    if (rule.rename.empty() && rename_by_default) rule.rename = rule.resource + ".shared";
    read_devices(decoder, rule);
    decoder.finish();
    config().shares.push_back(std::move(rule));
  }

  /// What each replica has: a part of the GPU, or so much memory, and then there are as many as fit.
  void read_amounts(Decoder& decoder, ShareRule& rule, bool says_replicas) {
    if (const auto percent = decoder.integer("compute", 1, kAllOfTime))
      rule.compute = static_cast<int>(*percent);
    if (rule.compute && says_replicas && rule.replicas * *rule.compute > kAllOfTime)
      decoder.mistake("compute", fmt::format("{} replicas with {} percent each are more than a GPU",
                                             rule.replicas, *rule.compute));
    if ((decoder.value("replicas") != nullptr) == (decoder.value("memory") != nullptr))
      decoder.mistake("memory", "either memory or replicas has to be there, and not both",
                      "memory makes as many replicas as fit, and replicas parts of one size");
    const auto text = decoder.string("memory");
    if (!text) return;
    rule.replicas = 0;
    if (const auto bytes = memory_of(*text); !bytes)
      decoder.mistake("memory", bytes.error().message, bytes.error().hint);
    else if (*bytes < workload::kMinGuarded)
      decoder.mistake("memory", fmt::format("nothing holds programs to less than {} of a GPU",
                                            format_bytes(workload::kMinGuarded)));
    else
      rule.memory = *bytes;
  }

  /// "all", or a list of indices and UUIDs.
  void read_devices(Decoder& decoder, ShareRule& rule) {
    const auto* value = decoder.value("devices");
    if (value == nullptr || *value == "all") return;
    const auto wrong = [&] {
      decoder.mistake("devices", "must be \"all\", or a list of indices and UUIDs of GPUs");
    };
    if (!value->is_array() || value->empty()) return wrong();
    for (const auto& item : *value) {
      if (item.is_number_integer() && item >= 0)
        rule.devices.push_back(std::to_string(item.get<std::int64_t>()));
      else if (item.is_string())
        rule.devices.push_back(item.get<std::string>());
      else
        return wrong();
    }
  }

  std::string_view what_;
  std::vector<Error> errors_;
  LoadedConfig loaded_;
};

}  // namespace

Result<LoadedConfig> decode_plugin_config(const nlohmann::json& document, std::string_view what) {
  Reader reader(what);
  reader.read(document);
  return std::move(reader).result();
}

Result<LoadedConfig> read_plugin_config(const std::string& file) {
  DROVER_TRY(const auto document, read_yaml(file));
  return decode_plugin_config(document, file);
}

bool PluginConfig::shares_by(ShareWay way) const {
  return std::ranges::find(shares, way, &ShareRule::way) != shares.end();
}

bool is_resource_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const auto domain = name.substr(0, slash);
  // Those of Kubernetes itself are no devices.
  if (domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") || domain.starts_with("requests."))
    return false;
  const bool lower = std::ranges::none_of(domain, [](char c) { return c >= 'A' && c <= 'Z'; });
  return lower && is_name(domain, kLongestDomain, "-.") &&
         is_name(name.substr(slash + 1), kLongestLabel, "-_.");
}

bool matches(std::string_view pattern, std::string_view text) {
  // Only the last '*' has to give way: what an earlier one took can stay taken.
  std::size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace drover::kube
