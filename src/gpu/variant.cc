#include "gpu/variant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/shorten.h"

namespace drover::gpu {
namespace {

constexpr std::size_t kLongestNeed = 1024;

/// What the numbers of a version count up to when its last one is raised: "390" to 391, "5.2" to 5.3.
std::optional<Version> after(std::string_view version) {
  const auto dot = version.rfind('.');
  const auto last = Version::parse(version.substr(dot == std::string_view::npos ? 0 : dot + 1));
  if (!last) return std::nullopt;
  const auto before = dot == std::string_view::npos ? std::string_view() : version.substr(0, dot + 1);
  return Version::parse(fmt::format("{}{}", before, last->major() + 1));
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  constexpr std::string_view kBetween = ", \t";
  while (true) {
    const auto begin = std::min(text.find_first_not_of(kBetween), text.size());
    text.remove_prefix(begin);
    if (text.empty()) return parts;
    // ">= 390" is one part.
    const auto value = std::min(text.find_first_not_of("<>=! "), text.size());
    const auto end = std::min(text.find_first_of(kBetween, value), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Version version_of(const ComputeCapability& capability) {
  return Version::parse(fmt::format("{}.{}", capability.major, capability.minor)).value_or(Version());
}

/// How much a CPU need says: the level first, since that decides which vectors programs use; at one level a
/// micro-architecture says more than the level alone; then whatever has more features.
auto weight(const CpuName& cpu) {
  return std::tuple(cpu.level, !cpu.is_level, cpu.features.size());
}

bool has_all(const CpuFeatures& features, const CpuName& wanted) {
  return std::ranges::includes(features, wanted.features);
}

std::optional<CpuName> best_cpu(const VariantNeeds& needs, const CpuFeatures& features) {
  std::optional<CpuName> best;
  for (const auto& cpu : needs.cpus)
    if (has_all(features, cpu) && (!best || weight(cpu) > weight(*best))) best = cpu;
  return best;
}

std::string cpu_text(const VariantNeeds& needs) {
  std::vector<std::string> names;
  for (const auto& cpu : needs.cpus) names.push_back(cpu.name);
  return fmt::format("{}", fmt::join(names, " or "));
}

std::optional<std::string> cpu_misfit(const VariantNeeds& needs, const CpuFeatures& features) {
  if (needs.cpus.empty() || best_cpu(needs, features)) return std::nullopt;
  constexpr std::size_t kMostNamed = 6;
  std::vector<std::string> missing;
  std::ranges::set_difference(needs.cpus.front().features, features, std::back_inserter(missing));
  const auto rest =
      missing.size() > kMostNamed ? fmt::format(" and {} more", missing.size() - kMostNamed) : "";
  missing.resize(std::min(missing.size(), kMostNamed));
  const auto own = describe_cpu(features);
  return fmt::format("it needs CPU {}, and this one{} has no {}{}", cpu_text(needs),
                     own.empty() ? "" : fmt::format(" ({})", own), fmt::join(missing, ", "), rest);
}

std::optional<std::string> version_misfit(const VersionNeed& need, std::string_view what,
                                          const std::string& has, std::string_view whose) {
  if (need.any()) return std::nullopt;
  const auto version = Version::parse(has);
  if (version && need.allows(*version)) return std::nullopt;
  if (has.empty()) return fmt::format("it needs {} {}, and {} has none", what, need.text(), whose);
  return fmt::format("it needs {} {}, and {} has {}", what, need.text(), whose, has);
}

std::optional<std::string> device_misfit(const VersionNeed& need, const std::vector<Device>& devices) {
  if (need.any()) return std::nullopt;
  const auto wanted = fmt::format("it needs compute capability {}", need.text());
  if (devices.empty()) return wanted + ", and there is no GPU for it";
  for (const auto& device : devices) {
    const auto& capability = device.compute_capability;
    if (capability && need.allows(version_of(*capability))) continue;
    return fmt::format(
        "{}, and GPU {}{} has {}", wanted, device.index,
        device.model.empty() ? "" : fmt::format(" ({})", device.model),
        capability ? fmt::format("{}.{}", capability->major, capability->minor) : "an unknown one");
  }
  return std::nullopt;
}

/// -1 when `a` is narrower, 1 when `b` is, about this version.
int compare(const VersionNeed& a, const VersionNeed& b, const std::optional<Version>& version) {
  if (!version) return 0;
  return a.narrower(b, *version) ? -1 : b.narrower(a, *version) ? 1 : 0;
}

}  // namespace

Result<VersionNeed> VersionNeed::parse(std::string_view text, Plain plain) {
  VersionNeed need;
  Span conditions;
  bool conditional = false;
  if (text.size() > kLongestNeed)
    return fail(ErrorKind::kInvalid, fmt::format("a list of versions has at most {} bytes", kLongestNeed));
  for (const auto part : parts_of(text)) {
    const auto signs = part.substr(0, std::min(part.find_first_not_of("<>=! "), part.size()));
    const auto sign = signs.substr(0, signs.find(' '));
    const auto value = part.substr(signs.size());
    const auto version = Version::parse(value);
    constexpr std::array<std::string_view, 7> kKnown{"", "=", "!=", "<", "<=", ">", ">="};
    if (!version || std::ranges::find(kKnown, sign) == kKnown.end())
      return fail(ErrorKind::kInvalid,
                  fmt::format("'{}' is no version and no condition", shortened(std::string(part), 64)),
                  "write versions like '396.44', and conditions like '>=390,<397'");
    if (sign.empty()) {
      Span span{.from = version};
      if (plain == Plain::kBranch) span.to = after(value);
      if (plain == Plain::kBinary) span.to = Version::parse(std::to_string(version->major() + 1));
      need.spans_.push_back(std::move(span));
      continue;
    }
    conditional = true;
    if (sign == "!=") conditions.without.push_back(*version);
    if (sign.find_first_of(">=") == 0 && (!conditions.from || *version >= *conditions.from)) {
      conditions.from_itself = sign != ">" && (conditions.from != version || conditions.from_itself);
      conditions.from = version;
    }
    if ((sign[0] == '<' || sign == "=") && (!conditions.to || *version <= *conditions.to)) {
      conditions.to_itself = sign != "<" && (conditions.to != version || conditions.to_itself);
      conditions.to = version;
    }
  }
  if (conditional) need.spans_.push_back(std::move(conditions));
  if (!need.spans_.empty()) need.text_ = std::string(text);
  return need;
}

bool VersionNeed::Span::holds(const Version& version) const {
  if (from && (from_itself ? version < *from : version <= *from)) return false;
  if (to && (to_itself ? version > *to : version >= *to)) return false;
  return std::ranges::find(without, version) == without.end();
}

bool VersionNeed::allows(const Version& version) const {
  return any() || narrowest(version) != nullptr;
}

bool VersionNeed::narrower(const Span& a, const Span& b) {
  const auto rank = [](const Span& span) {
    return std::tuple(span.to.has_value(), span.from.value_or(Version()));
  };
  if (rank(a) != rank(b)) return rank(a) > rank(b);
  if (a.to != b.to) return a.to < b.to;
  return std::tuple(a.from_itself, a.to_itself, b.without.size()) <
         std::tuple(b.from_itself, b.to_itself, a.without.size());
}

const VersionNeed::Span* VersionNeed::narrowest(const Version& version) const {
  const Span* best = nullptr;
  for (const auto& span : spans_)
    if (span.holds(version) && (best == nullptr || narrower(span, *best))) best = &span;
  return best;
}

bool VersionNeed::narrower(const VersionNeed& other, const Version& version) const {
  if (any() || other.any()) return !any() && other.any();
  const auto* const own = narrowest(version);
  const auto* const others = other.narrowest(version);
  return own != nullptr && (others == nullptr || narrower(*own, *others));
}

bool VariantNeeds::operator==(const VariantNeeds& other) const {
  const auto same_cpu = [](const CpuName& a, const CpuName& b) {
    return a.name == b.name && a.features == b.features;
  };
  return name == other.name && driver == other.driver && cuda == other.cuda &&
         compute_capability == other.compute_capability && std::ranges::equal(cpus, other.cpus, same_cpu);
}

std::optional<std::string> machine_misfit(const VariantNeeds& needs, const MachineFacts& facts) {
  if (auto why = cpu_misfit(needs, facts.cpu)) return why;
  if (auto why = version_misfit(needs.driver, "driver", facts.driver, "this machine")) return why;
  return version_misfit(needs.cuda, "CUDA", facts.cuda, "its driver");
}

std::optional<std::string> misfit(const VariantNeeds& needs, const MachineFacts& facts) {
  if (auto why = machine_misfit(needs, facts)) return why;
  return device_misfit(needs.compute_capability, facts.devices);
}

bool more_specific(const VariantNeeds& a, const VariantNeeds& b, const MachineFacts& facts) {
  for (const auto& device : facts.devices) {
    const auto capability = device.compute_capability.value_or(ComputeCapability());
    if (const auto order = compare(a.compute_capability, b.compute_capability, version_of(capability));
        order != 0)
      return order < 0;
  }
  if (const auto order = compare(a.driver, b.driver, Version::parse(facts.driver)); order != 0)
    return order < 0;
  if (const auto order = compare(a.cuda, b.cuda, Version::parse(facts.cuda)); order != 0) return order < 0;
  const auto of_a = best_cpu(a, facts.cpu);
  const auto of_b = best_cpu(b, facts.cpu);
  if (!of_a || !of_b) return of_a.has_value() && !of_b.has_value();
  return weight(*of_a) > weight(*of_b);
}

VariantChoice choose_variant(const std::vector<VariantNeeds>& variants, const MachineFacts& facts) {
  VariantChoice choice;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    choice.misfits.push_back(misfit(variants[i], facts).value_or(""));
    if (!choice.misfits.back().empty()) continue;
    if (!choice.chosen || more_specific(variants[i], variants[*choice.chosen], facts)) choice.chosen = i;
  }
  return choice;
}

Error none_fits(const std::vector<VariantNeeds>& variants, const VariantChoice& choice) {
  constexpr std::size_t kLongest = 2000;
  std::string reasons;
  for (std::size_t i = 0; i < variants.size(); ++i)
    reasons += fmt::format("{}{}: {}", i == 0 ? "" : "; ", variants[i].name, choice.misfits[i]);
  return {ErrorKind::kUnsupported,
          fmt::format("none of its {} variants fits this machine: {}", variants.size(),
                      shortened(std::move(reasons), kLongest)),
          "add a variant that needs less, or choose other GPUs; 'drover image variants' explains the choice",
          ""};
}

std::string describe(const VariantNeeds& needs) {
  std::vector<std::string> parts;
  if (!needs.compute_capability.any())
    parts.push_back("compute capability " + needs.compute_capability.text());
  if (!needs.driver.any()) parts.push_back("driver " + needs.driver.text());
  if (!needs.cuda.any()) parts.push_back("CUDA " + needs.cuda.text());
  if (!needs.cpus.empty()) parts.push_back("CPU " + cpu_text(needs));
  return parts.empty() ? "any machine" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace drover::gpu
