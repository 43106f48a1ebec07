#include "image/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/decode.h"
#include "base/shorten.h"
#include "base/yaml.h"
#include "image/text.h"

namespace drover::image {
namespace {

using gpu::VariantNeeds;
using gpu::VersionNeed;
using nlohmann::json;
using Plain = VersionNeed::Plain;

constexpr std::string_view kAnnotation = "dev.drover.variant.";
constexpr std::size_t kLongestName = 128;
constexpr std::size_t kMostCpus = 64;
constexpr std::size_t kLongestCpus = 2048;

Result<std::vector<gpu::CpuName>> parse_cpus(std::string_view text) {
  if (text.size() > kLongestCpus)
    return fail(ErrorKind::kInvalid, fmt::format("a list of CPUs has at most {} bytes", kLongestCpus));
  std::vector<gpu::CpuName> cpus;
  constexpr std::string_view kBetween = ", \t";
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return cpus;
    const auto word = text.substr(0, text.find_first_of(kBetween));
    DROVER_TRY(auto cpu, gpu::parse_cpu(word));
    cpus.push_back(std::move(cpu));
    if (cpus.size() > kMostCpus)
      return fail(ErrorKind::kInvalid, fmt::format("at most {} CPUs can be named", kMostCpus));
    text.remove_prefix(word.size());
  }
}

/// What one field says, put into its place; an Error of kInvalid when it is not understood or is no such
/// field.
Status set_need(VariantNeeds& needs, std::string_view field, const std::string& text) {
  const auto version = [&](VersionNeed& need, Plain plain) -> Status {
    DROVER_TRY(need, VersionNeed::parse(text, plain));
    return {};
  };
  if (field == "driver") return version(needs.driver, Plain::kBranch);
  if (field == "cuda") return version(needs.cuda, Plain::kAtLeast);
  if (field == "compute-capability") return version(needs.compute_capability, Plain::kBinary);
  if (field == "cpu") {
    DROVER_TRY(needs.cpus, parse_cpus(text));
    return {};
  }
  if (field == "name") {
    if (text.empty() || text.size() > kLongestName)
      return fail(ErrorKind::kInvalid, fmt::format("a name has 1 to {} bytes", kLongestName));
    needs.name = printable(text);
    return {};
  }
  static const std::set<std::string> known{"name", "cpu", "driver", "cuda", "compute-capability"};
  const auto meant = nearest(shortened(std::string(field), kLongestName), known);
  return fail(ErrorKind::kInvalid, "it says nothing that a variant can need",
              meant.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                            : fmt::format("did you mean '{}'?", meant));
}

/// One value of a list, as text; nullopt for what is no version. A number keeps no zero at its end, so a
/// driver's version must be quoted: 390.30 would be 390.3.
std::optional<std::string> text_of(const json& value, bool whole_only) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || (value.is_number_float() && !whole_only)) return value.dump();
  return std::nullopt;
}

void decode_need(Decoder& entry, const std::string& name, std::string_view field, VariantNeeds& needs) {
  const auto* const given = entry.value(name);
  if (given == nullptr) return;
  const auto list = given->is_array() ? *given : json::array({*given});
  std::string joined;
  for (const auto& value : list) {
    const auto text = text_of(value, field == "driver");
    if (!text)
      return entry.mistake(name, "it is no text, and no list of texts", "put versions in quotes: \"390.30\"");
    joined += (joined.empty() ? "" : ", ") + *text;
  }
  if (const auto set = set_need(needs, field, joined); !set)
    entry.mistake(name, set.error().message, set.error().hint);
}

Variant decode_variant(Decoder& entry) {
  Variant variant;
  variant.reference = entry.string("image").value_or("");
  if (variant.reference.empty()) entry.mistake("image", "is missing", "name the image of this variant");
  if (variant.reference.starts_with("variants:")) entry.mistake("image", "is a list again", "name an image");
  decode_need(entry, "name", "name", variant.needs);
  decode_need(entry, "cpu", "cpu", variant.needs);
  decode_need(entry, "driver", "driver", variant.needs);
  decode_need(entry, "cuda", "cuda", variant.needs);
  decode_need(entry, "compute_capability", "compute-capability", variant.needs);
  entry.finish();
  if (variant.needs.name.empty()) variant.needs.name = shortened(printable(variant.reference), kLongestName);
  return variant;
}

bool speaks(const Descriptor& entry) {
  return std::ranges::any_of(
      entry.annotations, [](const auto& annotation) { return annotation.first.starts_with(kAnnotation); });
}

/// The level that an entry for amd64 gives in the field which Go calls GOAMD64; "" without one.
std::string level_of(const Descriptor& entry) {
  if (!entry.platform || entry.platform->architecture != "amd64") return "";
  const auto& variant = entry.platform->variant;
  return variant == "v1" || variant == "v2" || variant == "v3" || variant == "v4" ? "x86-64-" + variant : "";
}

bool is_image(const Descriptor& entry, const std::string& architecture) {
  if (!is_manifest(entry.media_type)) return false;
  const auto& platform = entry.platform;  // attestations call themselves "unknown/unknown"
  return !platform || ((platform->os.empty() || platform->os == "linux") &&
                       (platform->architecture.empty() || platform->architecture == architecture));
}

Result<Variant> variant_of(const Descriptor& entry, const std::string& reference) {
  Variant variant;
  variant.reference = reference.substr(0, reference.find("@sha256:")) + "@" + entry.digest;
  if (const auto level = level_of(entry); !level.empty())
    DROVER_CHECK_OK(set_need(variant.needs, "cpu", level));
  for (const auto& [name, text] : entry.annotations) {
    if (!name.starts_with(kAnnotation)) continue;
    if (const auto set = set_need(variant.needs, std::string_view(name).substr(kAnnotation.size()), text);
        !set)
      return Failure(
          context(set.error(), fmt::format("annotation '{}'", shortened(printable(name), kLongestName))));
  }
  if (variant.needs.name.empty()) variant.needs.name = gpu::describe(variant.needs);
  return variant;
}

}  // namespace

Result<std::vector<Variant>> parse_variant_list(std::string_view text, std::string_view what) {
  DROVER_TRY(const auto document, parse_yaml(text, what));
  std::vector<Error> mistakes;
  Decoder object(document, mistakes);
  std::vector<Variant> variants;
  auto entries = object.objects("variants");
  if (entries.empty() && mistakes.empty()) object.mistake("variants", "lists no image");
  if (entries.size() > kMaxVariants)
    object.mistake("variants", fmt::format("lists more than {} images", kMaxVariants));
  else
    for (auto& entry : entries) variants.push_back(decode_variant(entry));
  object.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, what));
  return variants;
}

Result<std::vector<Variant>> variants_of(const std::vector<Descriptor>& entries, const std::string& reference,
                                         const std::string& architecture) {
  std::vector<Variant> variants;
  const bool said = std::ranges::any_of(entries, [&](const Descriptor& entry) {
    return is_image(entry, architecture) && (speaks(entry) || !level_of(entry).empty());
  });
  if (!said) return variants;
  for (const auto& entry : entries) {
    if (!is_image(entry, architecture)) continue;
    if (variants.size() == kMaxVariants)
      return fail(ErrorKind::kInvalid, fmt::format("the index has more than {} variants", kMaxVariants));
    DROVER_TRY(auto variant, variant_of(entry, reference));
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace drover::image
