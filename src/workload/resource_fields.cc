#include "workload/resource_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"

namespace drover::workload {
namespace {

using nlohmann::json;

constexpr int kMaxGpus = 1024;
constexpr int kMaxNvlinks = 32;
constexpr std::size_t kMaxClaims = 64;
constexpr std::size_t kMaxNames = 64;
constexpr std::size_t kMaxText = 128;
constexpr std::int64_t kMaxMilliCpus = 1'000'000;
constexpr std::int64_t kMaxBytes = 1LL << 60;
constexpr std::uint64_t kMinMemory = 4ULL << 20;
constexpr std::uint64_t kMinShare = 1ULL << 20;

constexpr std::array<std::string_view, 3> kPreferences = {"none", "prefer", "require"};
const std::array<std::string, 5> kFilterFields = {"gpu_model", "gpu_memory", "gpu_compute_capability",
                                                  "gpu_ecc", "gpu_driver"};

bool is_sound_text(const std::string& text) {
  return !text.empty() && text.size() <= kMaxText &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// A size as a number of bytes or as text: "16GiB".
std::optional<std::uint64_t> decode_bytes(Decoder& decoder, const std::string& name, std::uint64_t least) {
  const auto* field = decoder.value(name);
  if (field == nullptr) return std::nullopt;
  std::optional<std::uint64_t> bytes;
  if (field->is_number()) {
    if (const auto number = decoder.integer(name, 0, kMaxBytes)) bytes = static_cast<std::uint64_t>(*number);
  } else if (const auto text = decoder.string(name)) {
    const auto parsed = parse_bytes(*text);
    if (parsed && *parsed <= static_cast<std::uint64_t>(kMaxBytes))
      bytes = *parsed;
    else if (parsed)
      decoder.mistake(name, fmt::format("'{}' is more than there can be", *text));
    else
      decoder.mistake(name, parsed.error().message, parsed.error().hint);
  }
  if (!bytes || *bytes >= least) return bytes;
  decoder.mistake(name, fmt::format("{} is too little", format_bytes(*bytes)),
                  fmt::format("give at least {}", format_bytes(least)));
  return std::nullopt;
}

/// "7.0"
std::optional<gpu::ComputeCapability> parse_capability(const std::string& text) {
  gpu::ComputeCapability capability;
  const char* last = text.data() + text.size();
  const auto major = std::from_chars(text.data(), last, capability.major);
  if (major.ec != std::errc() || major.ptr == last || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, last, capability.minor);
  if (minor.ec != std::errc() || minor.ptr != last) return std::nullopt;
  if (capability.major < 1 || capability.major > 99 || capability.minor < 0 || capability.minor > 9)
    return std::nullopt;
  return capability;
}

/// "535.104.12"
bool is_driver_version(const std::string& text) {
  const bool sound = text.size() <= 32 && text.find_first_not_of("0123456789.") == std::string::npos;
  return sound && !text.empty() && text.front() != '.' && text.back() != '.' &&
         text.find("..") == std::string::npos;
}

/// The filters of one claim; with `prefix` "gpu_" those of a request for GPUs of one kind.
DeviceFilter decode_filter(Decoder& decoder, const std::string& prefix) {
  DeviceFilter filter;
  filter.models = decoder.strings(prefix + "model").value_or(std::vector<std::string>{});
  const auto* models = decoder.value(prefix + "model");
  if (models != nullptr && models->is_array() && (models->empty() || models->size() > kMaxNames))
    decoder.mistake(prefix + "model", fmt::format("a list of 1 to {} models is expected", kMaxNames));
  if (!std::all_of(filter.models.begin(), filter.models.end(), is_sound_text))
    decoder.mistake(prefix + "model", fmt::format("a model has 1 to {} printable characters", kMaxText));
  filter.min_memory_bytes = decode_bytes(decoder, prefix + "memory", 1).value_or(0);
  if (const auto text = decoder.string(prefix + "compute_capability")) {
    filter.min_compute_capability = parse_capability(*text);
    if (!filter.min_compute_capability)
      decoder.mistake(prefix + "compute_capability", fmt::format("'{}' is not a compute capability", *text),
                      "write for example \"7.0\"");
  }
  filter.ecc = decoder.boolean(prefix + "ecc");
  filter.min_driver = decoder.string(prefix + "driver").value_or("");
  if (decoder.value(prefix + "driver") != nullptr && decoder.value(prefix + "driver")->is_string() &&
      !is_driver_version(filter.min_driver))
    decoder.mistake(prefix + "driver", fmt::format("'{}' is not the version of a driver", filter.min_driver),
                    "write for example \"535.104\"");
  return filter;
}

std::vector<DeviceClaim> decode_claims(Decoder& decoder, const std::string& name) {
  std::vector<DeviceClaim> claims;
  if (const auto* list = decoder.value(name);
      list->is_array() && (list->empty() || list->size() > kMaxClaims)) {
    decoder.mistake(name, fmt::format("a list of 1 to {} kinds of GPUs is expected", kMaxClaims),
                    "for none, leave it out");
    return claims;
  }
  for (auto& object : decoder.objects(name)) {
    DeviceClaim claim;
    claim.count = static_cast<int>(object.integer("count", 1, kMaxGpus).value_or(1));
    claim.filter = decode_filter(object, "");
    object.finish();
    claims.push_back(std::move(claim));
  }
  return claims;
}

/// 0.5 → 500; a part that no thousandths are is a mistake.
std::optional<int> decode_thousandths(Decoder& decoder, const std::string& name) {
  const auto part = decoder.value(name)->get<double>();
  if (!(part > 0 && part <= 1)) {
    decoder.mistake(
        name, fmt::format("a share is more than 0 and at most 1, found {}", decoder.value(name)->dump()),
        "write for example 0.5, or a size of memory: \"8GiB\"");
    return std::nullopt;
  }
  const auto milli = std::round(part * 1000);
  if (milli >= 1 && std::abs(part * 1000 - milli) < 1e-6) return static_cast<int>(milli);
  decoder.mistake(name, fmt::format("{} is finer than a thousandth of a GPU", decoder.value(name)->dump()),
                  "round it to three decimals");
  return std::nullopt;
}

void decode_share(Decoder& decoder, Share& share) {
  const auto* field = decoder.value("gpu_share");
  if (field == nullptr) return;
  if (field->is_number()) {
    share.milli = decode_thousandths(decoder, "gpu_share").value_or(share.milli);
  } else if (field->is_string()) {
    share.memory_bytes = decode_bytes(decoder, "gpu_share", kMinShare).value_or(0);
  } else {
    decoder.mistake("gpu_share",
                    fmt::format("expected a part or a size of memory, found {}", field->type_name()),
                    "write for example 0.5 or \"8GiB\"");
  }
}

/// Of a part, what it counts as is kept too: nobody else has to read its name.
void take_part(Decoder& decoder, std::string name, Resources& resources) {
  std::ranges::replace(name, '+', '.');
  if (const auto share = share_of_part(name)) {
    resources.part = std::move(name);
    resources.share = *share;
  } else {
    decoder.mistake("gpu_part", fmt::format("'{}' is not the name of a MIG profile", name),
                    "write for example \"1g.10gb\"");
  }
}

void decode_part(Decoder& decoder, Resources& resources) {
  const auto name = decoder.string("gpu_part");
  if (!name) return;
  const auto* gpus = decoder.value("gpus");
  const bool shared = !resources.share.whole();
  if (gpus != nullptr && gpus->is_array())
    decoder.mistake("gpus", "gpu_part is the profile of all parts, but gpus lists several kinds",
                    "say how many with a number");
  else if (shared)
    decoder.mistake(decoder.value("gpu_share") != nullptr ? "gpu_share" : "gpus",
                    "gpu_part asks for parts of GPUs, and a part is not shared", "leave one of the two out");
  take_part(decoder, *name, resources);
}

/// "gpus" as a number: how many, or a part of one. None when that is wrong.
std::optional<int> decode_count(Decoder& decoder, Share& share) {
  const auto number = decoder.number("gpus", 0, kMaxGpus);
  if (!number) return std::nullopt;
  if (*number == std::floor(*number)) return static_cast<int>(*number);
  if (*number > 1) {
    decoder.mistake("gpus", fmt::format("{} GPUs are neither whole ones nor a part of one", *number),
                    "ask for a whole number, and with gpu_share for a part of each");
  } else if (decoder.value("gpu_share") != nullptr) {
    decoder.mistake("gpus", "the share is given twice, here and as gpu_share", "give it in one of the two");
  } else {
    share.milli = decode_thousandths(decoder, "gpus").value_or(1000);
  }
  return 1;
}

std::string first_given(Decoder& decoder, const std::array<std::string, 5>& names) {
  std::string given;
  for (const auto& name : names)  // all are asked for, so that all are known
    if (decoder.value(name) != nullptr && given.empty()) given = name;
  return given;
}

/// Whether it is known how many GPUs are asked for.
bool decode_gpus(Decoder& decoder, Resources& resources) {
  const auto filter_field = first_given(decoder, kFilterFields);
  const auto* field = decoder.value("gpus");
  decode_share(decoder, resources.share);
  if (field != nullptr && field->is_array()) {
    resources.gpus = decode_claims(decoder, "gpus");
    if (!filter_field.empty())
      decoder.mistake(filter_field, "it says something of all GPUs, but gpus lists several kinds",
                      "say it of each kind in gpus");
    if (resources.gpu_count() > kMaxGpus)
      decoder.mistake("gpus",
                      fmt::format("{} GPUs are asked for, {} at most", resources.gpu_count(), kMaxGpus));
    return !resources.gpus.empty();
  }
  const bool implied = field == nullptr && (!filter_field.empty() || decoder.value("gpu_share") != nullptr ||
                                            decoder.value("gpu_part") != nullptr);
  std::optional<int> count = implied ? 1 : 0;
  if (field != nullptr) count = decode_count(decoder, resources.share);
  auto filter = decode_filter(decoder, "gpu_");
  if (count.value_or(0) > 0) resources.gpus = {{*count, std::move(filter)}};
  return count.has_value();
}

void decode_preference(Decoder& decoder, const std::string& name, Preference& preference) {
  if (const auto chosen = decoder.choice(name, kPreferences)) preference = static_cast<Preference>(*chosen);
}

void decode_constraints(Decoder& decoder, std::vector<AttributeConstraint>& constraints) {
  const auto* field = decoder.value("constraints");
  auto object = decoder.object("constraints");
  if (!object || !field->is_object()) return;
  for (const auto& [name, unused] : field->items()) {
    auto any_of = object->strings(name);
    if (!is_sound_text(name)) object->mistake(name, "this is not the name of an attribute");
    if (any_of && (any_of->empty() || any_of->size() > kMaxNames ||
                   !std::all_of(any_of->begin(), any_of->end(), is_sound_text)))
      object->mistake(name, fmt::format("1 to {} values are expected, each of 1 to {} printable characters",
                                        kMaxNames, kMaxText));
    if (unused.is_null()) object->mistake(name, "a value is expected, found null");
    constraints.push_back({name, any_of.value_or(std::vector<std::string>{})});
  }
  if (constraints.size() > kMaxNames) decoder.mistake("constraints", fmt::format("{} at most", kMaxNames));
}

void decode_interconnect(Decoder& decoder, Interconnect& interconnect) {
  const auto text = decoder.string("interconnect");
  if (!text) return;
  const auto parsed = parse_interconnect(*text);
  if (parsed)
    interconnect = *parsed;
  else
    decoder.mistake("interconnect", parsed.error().message, parsed.error().hint);
}

/// MPS is between the tasks of one group, who have whole GPUs together.
void find_contradictions_with_mps(Decoder& decoder, const Resources& resources) {
  if (resources.gpu_count() == 0)
    decoder.mistake("share_by", "no GPUs are asked for that could be shared by MPS",
                    "ask for 1 or more with gpus");
  else if (!resources.share.whole())
    decoder.mistake("share_by", "MPS is for whole GPUs, and a part of one is asked for",
                    "leave one of the two out");
  if (resources.group.empty())
    decoder.mistake("share_by", "MPS is between the tasks of a group, and none is named",
                    "name one with group");
}

/// Fields that are right each by itself but not together.
void find_contradictions(Decoder& decoder, const Resources& resources) {
  const int gpus = resources.gpu_count();
  const auto needs = [&](const std::string& name, bool asked, int least, const char* why) {
    if (asked && gpus < least) decoder.mistake(name, why, fmt::format("ask for {} or more with gpus", least));
  };
  for (const auto& name : kFilterFields)
    needs(name, decoder.value(name) != nullptr, 1, "no GPUs are asked for that could be so");
  needs("gpu_share", decoder.value("gpu_share") != nullptr, 1, "no GPUs are asked for that could be shared");
  if (resources.share_by == ShareBy::kKernel && !resources.group.empty())
    decoder.mistake("share_by",
                    "the tasks of a group have one share together, and the driver would limit each by itself",
                    "leave the group or share_by out");
  if (resources.by_mps())
    find_contradictions_with_mps(decoder, resources);
  else if (decoder.value("share_by") != nullptr && gpus > 0 && resources.share.whole())
    decoder.mistake("share_by", "whole GPUs are nobody else's, and nothing has to hold a task to them",
                    "ask for a share of each with gpu_share");
  needs("gpu_part", !resources.part.empty(), 1, "no GPUs are asked for that could be cut");
  needs("different_models", resources.different_models, 2, "only several GPUs can be of different models");
  needs("interconnect", resources.interconnect.asks(), 2, "only several GPUs are joined to each other");
  needs("cpu_affinity", resources.cpu_affinity == Preference::kRequire, 1,
        "without GPUs no CPUs are near them");
  needs("nic", resources.nic != Preference::kNone, 1, "without GPUs no network card is near them");
  needs("group", !resources.group.empty(), 1, "the tasks of a group share GPUs, and none are asked for");
}

void decode_share_by(Decoder& decoder, Resources& resources) {
  const auto word = decoder.string("share_by");
  if (!word) return;
  if (const auto known = parse_share_by(*word))
    resources.share_by = *known;
  else
    decoder.mistake("share_by", fmt::format("'{}' is nothing that holds tasks to a share here", *word),
                    fmt::format("it is one of {}", fmt::join(kShareWays, ", ")));
  if (resources.insists_on_share() && resources.share.memory_bytes > 0 &&
      resources.share.memory_bytes < kMinGuarded)
    decoder.mistake("share_by",
                    "programs with less than 1 GiB of a GPU, most of which its context takes, do not start",
                    "ask for 1 GiB or more, or for share_by none");
}

/// What a part cannot be or have.
void find_contradictions_with_part(Decoder& decoder, const Resources& resources) {
  const bool by_name = !resources.part.empty();
  const auto refuse = [&](const char* field, bool asked, const char* why) {
    if (asked)
      decoder.mistake(
          field, fmt::format("{} asks for parts of GPUs: {}", by_name ? "gpu_part" : "share_by mig", why),
          "leave one of the two out");
  };
  refuse("share_by", by_name && resources.share_by != ShareBy::kAuto && !resources.by_mps(),
         "the hardware holds the task to it");
  const auto* gpus = decoder.value("gpus");
  refuse("gpus", !by_name && gpus != nullptr && gpus->is_array(), "they are of one kind");
  refuse("gpu_memory", decoder.value("gpu_memory") != nullptr, "the profile says how much memory one has");
  refuse("different_models", resources.different_models, "they may be of one GPU");
  refuse("interconnect", resources.interconnect.asks(), "no two are joined");
  refuse("nic", resources.nic != Preference::kNone, "no network card is chosen for them");
  refuse("group", !resources.group.empty(), "each belongs to one task");
  refuse("cpu_affinity", resources.cpu_affinity == Preference::kRequire, "CPUs near them cannot be required");
}

/// What both the request and the stored task say in the same way.
void decode_common(Decoder& decoder, Resources& resources) {
  resources.different_models = decoder.boolean("different_models").value_or(false);
  decode_interconnect(decoder, resources.interconnect);
  decode_preference(decoder, "cpu_affinity", resources.cpu_affinity);
  decode_preference(decoder, "nic", resources.nic);
  decode_constraints(decoder, resources.attributes);
  decode_share_by(decoder, resources);
  resources.group = decoder.string("group").value_or("");
  if (const auto cpus = decoder.number("cpus", 0.001, kMaxMilliCpus / 1e3))
    resources.milli_cpus = static_cast<std::int64_t>(*cpus * 1000 + 0.5);
}

}  // namespace

void decode_resources(Decoder& decoder, Resources& resources) {
  const bool gpus_are_known = decode_gpus(decoder, resources);
  decode_part(decoder, resources);
  decode_common(decoder, resources);
  if (const auto* group = decoder.value("group");
      group != nullptr && group->is_string() && !is_plain_name(resources.group))
    decoder.mistake("group", "a group's name has 1 to 64 letters, digits, dots, dashes and underscores");
  resources.memory_bytes = decode_bytes(decoder, "memory", kMinMemory).value_or(resources.memory_bytes);
  if (gpus_are_known) find_contradictions(decoder, resources);
  if (resources.wants_parts()) find_contradictions_with_part(decoder, resources);
}

void decode_stored_resources(Decoder& decoder, Resources& resources) {
  const auto count = static_cast<int>(decoder.integer("gpus", 0, kMaxGpus).value_or(0));
  if (decoder.value("gpu_claims") != nullptr)
    resources.gpus = decode_claims(decoder, "gpu_claims");
  else if (count > 0)
    resources.gpus = {{count, {}}};
  if (auto share = decoder.object("gpu_share")) {
    resources.share.milli = static_cast<int>(share->integer("milli", 1, 1000).value_or(1000));
    resources.share.memory_bytes =
        static_cast<std::uint64_t>(share->integer("memory_bytes", 1, kMaxBytes).value_or(0));
  }
  if (const auto part = decoder.string("gpu_part")) take_part(decoder, *part, resources);
  decode_common(decoder, resources);
  resources.memory_bytes = static_cast<std::uint64_t>(decoder.integer("memory", 0, kMaxBytes).value_or(0));
}

Result<Share> decode_share(const json& body) {
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  Share share;
  if (decoder.value("gpu_share") == nullptr)
    decoder.mistake("gpu_share", "it is not said", "write for example 0.5 or \"8GiB\"");
  decode_share(decoder, share);
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The request"));
  return share;
}

std::optional<ShareBy> parse_share_by(std::string_view word) {
  const auto found = std::ranges::find(kShareWays, word);
  if (found == kShareWays.end()) return std::nullopt;
  return static_cast<ShareBy>(found - kShareWays.begin());
}

Result<Interconnect> parse_interconnect(std::string_view text) {
  const auto word = lower(text);
  using gpu::PcieLevel;
  // An NVLink is nearer than any way over PCIe: pairs that have one satisfy these too.
  constexpr std::array<std::pair<std::string_view, Interconnect>, 11> kWords = {{
      {"any", {}},
      {"sys", {}},
      {"qpi", {}},
      {"nvlink", {1, PcieLevel::kUnknown}},
      {"switch", {0, PcieLevel::kSwitch}},
      {"pix", {0, PcieLevel::kSwitch}},
      {"switches", {0, PcieLevel::kSwitches}},
      {"pxb", {0, PcieLevel::kSwitches}},
      {"bridge", {0, PcieLevel::kHostBridge}},
      {"phb", {0, PcieLevel::kHostBridge}},
      {"node", {0, PcieLevel::kSameNuma}},
  }};
  for (const auto& [name, meaning] : kWords)
    if (word == name) return meaning;
  for (const std::string_view prefix : {"nvlink:", "nv"}) {
    if (!word.starts_with(prefix)) continue;
    int links = 0;
    const char* last = word.data() + word.size();
    const auto [end, error] = std::from_chars(word.data() + prefix.size(), last, links);
    if (error == std::errc() && end == last && links >= 1 && links <= kMaxNvlinks)
      return Interconnect{links, PcieLevel::kUnknown};
  }
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is no way in which GPUs are joined", text),
              "it is one of nvlink:2, nvlink, switch, switches, bridge, node, any");
}

std::string to_string(const Interconnect& interconnect) {
  switch (interconnect.max_pcie) {
    case gpu::PcieLevel::kSameDevice:
    case gpu::PcieLevel::kSameBoard:
    case gpu::PcieLevel::kSwitch:
      return "switch";
    case gpu::PcieLevel::kSwitches:
      return "switches";
    case gpu::PcieLevel::kHostBridge:
      return "bridge";
    case gpu::PcieLevel::kSameNuma:
      return "node";
    case gpu::PcieLevel::kAcross:
      return "any";
    case gpu::PcieLevel::kUnknown:
      break;
  }
  if (interconnect.min_nvlinks == 0) return "any";
  return interconnect.min_nvlinks == 1 ? "nvlink" : fmt::format("nvlink:{}", interconnect.min_nvlinks);
}

std::string_view to_string(Preference preference) {
  return kPreferences.at(static_cast<std::size_t>(preference));
}

std::string_view to_string(Arrangement arrangement) {
  return kArrangements.at(static_cast<std::size_t>(arrangement));
}

bool is_plain_name(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string_view::npos;
}

}  // namespace drover::workload
