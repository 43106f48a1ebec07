#include "cli/words.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "gpu/share_tier.h"

namespace drover::cli {

using nlohmann::json;

namespace {

constexpr int kWhole = 1000;

/// "0.5", "8 GiB"; "" for whole GPUs.
std::string share_of(const json& share) {
  if (!share.is_object()) return "";
  if (const auto memory = share.value("memory_bytes", std::uint64_t{0}); memory > 0)
    return format_bytes(memory);
  const auto milli = share.value("milli", kWhole);
  return milli == kWhole ? "" : parts(milli);
}

/// "1g.10gb of 2,2 (hard)"
std::string granted_parts(const json& grants, const KnownGpus& gpus) {
  std::string indices;
  for (const auto& grant : grants)
    indices += (indices.empty() ? "" : ",") + gpus.index(grant.value("gpu", ""));
  return fmt::format("{} of {}{}", grants.front().at("mig").value("profile", ""), indices,
                     tier_words(grants));
}

}  // namespace

std::string counted(double number, const char* what) {
  return fmt::format("{:g} {}{}", number, what, number == 1 ? "" : "s");
}

KnownGpus::KnownGpus(const json& listing) {
  for (const auto& gpu : listing.value("gpus", json::array()))
    gpus_[gpu.value("uuid", "")] = {std::to_string(gpu.value("index", 0)), gpu.value("model", "")};
}

std::string KnownGpus::index(const std::string& uuid) const {
  const auto found = gpus_.find(uuid);
  return found == gpus_.end() ? "?" : found->second.first;
}

std::string KnownGpus::model(const std::string& uuid) const {
  const auto found = gpus_.find(uuid);
  return found == gpus_.end() ? "" : found->second.second;
}

std::string parts(std::int64_t milli) {
  return fmt::format("{:g}", static_cast<double>(milli) / kWhole);
}

std::string tier_words(const json& grants) {
  return gpu::tier_in_words(grants.empty() ? "" : grants.front().value("tier", ""));
}

std::string granted(const json& grants, const json& share, const KnownGpus& gpus) {
  if (!grants.empty() && grants.front().contains("mig")) return granted_parts(grants, gpus);
  std::string indices;
  for (const auto& grant : grants)
    indices += (indices.empty() ? "" : ",") + gpus.index(grant.value("gpu", ""));
  const auto part = share_of(share);
  return part.empty() || indices.empty() ? indices : part + " of " + indices + tier_words(grants);
}

std::string mps_words(const json& task) {
  return task.value("share_by", "") == "mps" ? " by MPS" : "";
}

std::string wanted(const json& task) {
  const int count = task.value("gpus", 0);
  if (count == 0) return "-";
  if (const auto profile = task.value("gpu_part", ""); !profile.empty())
    return count == 1 ? profile : fmt::format("{} x {}", count, profile);
  const auto part = share_of(task.value("gpu_share", json()));
  return part.empty() ? std::to_string(count) : fmt::format("{} of {}", part, count);
}

std::string amounts(const json& amounts, bool with_zeros) {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  const auto shown = [&](const char* field) {
    const auto value = amounts.value(field, json());
    return value.is_number() && (with_zeros || value.get<double>() != 0);
  };
  if (shown("gpus")) add(counted(amounts.value("gpus", 0.0), "GPU"));
  if (shown("cpus")) add(counted(amounts.value("cpus", 0.0), "CPU"));
  if (shown("memory")) add(format_bytes(amounts.value("memory", std::uint64_t{0})));
  return text.empty() ? "-" : text;
}

std::string submitted_id(const json& answer) {
  for (const auto* whole : {"array", "gang"})
    if (answer.contains(whole)) return answer.at(whole).get<std::string>();
  return answer.at("task").value("id", "");
}

}  // namespace drover::cli
