#include "placement/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "placement/wiring.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostClaims = 8;
constexpr std::size_t kMostNames = 64;  ///< models, attributes, values
constexpr std::size_t kLongestName = 256;
constexpr std::uint64_t kMostMemory = 1ULL << 60;
constexpr std::int64_t kMostMilliCpus = 1'000'000'000;
constexpr int kMostNvlinks = 1000;

Failure wrong(std::string message, std::string hint, std::string path) {
  return fail(ErrorKind::kInvalid, std::move(message), std::move(hint), std::move(path));
}

bool has_letter_or_digit(const std::string& text) {
  return std::ranges::any_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

Status check_name(const std::string& name, const std::string& what, const std::string& path) {
  if (!has_letter_or_digit(name)) return wrong(what + " has a letter or a digit", "", path);
  if (name.size() > kLongestName)
    return wrong(fmt::format("{} has at most {} bytes", what, kLongestName), "", path);
  return {};
}

Status check_driver(const std::string& driver, const std::string& path) {
  const bool numbers = std::ranges::all_of(driver, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  if (driver.empty() || (numbers && driver.size() <= 32 && driver.front() != '.' && driver.back() != '.' &&
                         driver.find("..") == std::string::npos))
    return {};
  return wrong(fmt::format("'{}' is no driver version", driver.substr(0, 32)), "write it like '535.104'",
               path);
}

Status check_filter(const DeviceFilter& filter, const std::string& path) {
  if (filter.models.size() > kMostNames)
    return wrong(fmt::format("At most {} models can be named", kMostNames), "", path + "/models");
  for (std::size_t i = 0; i < filter.models.size(); ++i)
    DROVER_CHECK_OK(check_name(filter.models[i], "A model", fmt::format("{}/models/{}", path, i)));
  if (filter.min_memory_bytes > kMostGpuMemory)
    return wrong("No GPU has so much memory", "ask for at most 1 PiB", path + "/min_memory_bytes");
  if (const auto& capability = filter.min_compute_capability;
      capability &&
      (capability->major < 0 || capability->major > 99 || capability->minor < 0 || capability->minor > 99))
    return wrong(fmt::format("There is no compute capability {}.{}", capability->major, capability->minor),
                 "write it like '7.0'", path + "/min_compute_capability");
  return check_driver(filter.min_driver, path + "/min_driver");
}

Status check_claims(const Request& request) {
  if (request.gpus.size() > kMostClaims)
    return wrong(fmt::format("At most {} kinds of GPUs can be asked for at once", kMostClaims), "", "/gpus");
  int sum = 0;
  for (std::size_t i = 0; i < request.gpus.size(); ++i) {
    const auto& claim = request.gpus[i];
    const auto path = fmt::format("/gpus/{}", i);
    if (claim.count < 1)
      return wrong(fmt::format("{} GPUs cannot be asked for", claim.count), "ask for at least 1",
                   path + "/count");
    if (claim.count > kMaxDevices - sum)
      return wrong(fmt::format("One container gets at most {} GPUs", kMaxDevices),
                   "a gang of several containers can have more", path + "/count");
    sum += claim.count;
    DROVER_CHECK_OK(check_filter(claim.filter, path + "/filter"));
  }
  return {};
}

Status check_share(const Share& share) {
  if (share.milli < 1 || share.milli > 1000)
    return wrong(fmt::format("{} thousandths of a GPU cannot be asked for", share.milli),
                 "1 to 1000; 1000 is a whole GPU", "/share/milli");
  if (share.memory_bytes > kMostGpuMemory)
    return wrong("No GPU has so much memory", "ask for at most 1 PiB", "/share/memory_bytes");
  if (share.memory_bytes > 0 && share.milli != 1000)
    return wrong("A share is asked for by thousandths or by memory, not by both", "leave one of them out",
                 "/share");
  return {};
}

/// What only several GPUs, or any, can have.
Status check_preferences(const Request& request) {
  const auto gpus = request.gpu_count();
  const auto& minimum = request.interconnect;
  if (minimum.min_nvlinks < 0 || minimum.min_nvlinks > kMostNvlinks)
    return wrong(fmt::format("{} NVLinks cannot be asked for", minimum.min_nvlinks),
                 fmt::format("0 to {}", kMostNvlinks), "/interconnect/min_nvlinks");
  if (minimum.max_pcie == gpu::PcieLevel::kSameDevice || minimum.max_pcie > gpu::PcieLevel::kUnknown ||
      minimum.max_pcie < gpu::PcieLevel::kSameDevice)
    return wrong("Two GPUs are never the same device", "the nearest are on one board",
                 "/interconnect/max_pcie");
  if (minimum.asks() && gpus < 2)
    return wrong("An interconnect joins at least 2 GPUs", "ask for more GPUs, or for no interconnect",
                 "/interconnect");
  if (request.different_models && gpus < 2)
    return wrong("Different models need at least 2 GPUs", "ask for more GPUs", "/different_models");
  if (gpus > 0) return {};
  if (!request.share.whole()) return wrong("A share is asked for, but no GPU", "ask for a GPU", "/share");
  if (request.cpu_affinity == Preference::kRequire)
    return wrong("CPUs near the GPUs are required, but no GPU is asked for", "ask for a GPU",
                 "/cpu_affinity");
  if (request.nic != Preference::kNone)
    return wrong("A NIC near the GPUs is asked for, but no GPU", "ask for a GPU", "/nic");
  if (!request.group.empty())
    return wrong("A group shares GPUs, but no GPU is asked for", "ask for a GPU", "/group");
  return {};
}

Status check_host(const Request& request) {
  if (request.milli_cpus < 0) return wrong("A number of CPUs is not negative", "", "/milli_cpus");
  if (request.milli_cpus > kMostMilliCpus) return wrong("No machine has so many CPUs", "", "/milli_cpus");
  if (request.memory_bytes > kMostMemory) return wrong("No machine has so much memory", "", "/memory_bytes");
  return {};
}

Status check_attributes(const Request& request) {
  if (request.attributes.size() > kMostNames)
    return wrong(fmt::format("At most {} attributes can be asked for", kMostNames), "", "/attributes");
  std::set<std::string> names;
  for (std::size_t i = 0; i < request.attributes.size(); ++i) {
    const auto& attribute = request.attributes[i];
    const auto path = fmt::format("/attributes/{}", i);
    DROVER_CHECK_OK(check_name(attribute.name, "The name of an attribute", path + "/name"));
    if (!names.insert(attribute.name).second)
      return wrong(fmt::format("Attribute '{}' is asked for twice", attribute.name),
                   "name all values that will do in one list", path + "/name");
    if (attribute.any_of.empty() || attribute.any_of.size() > kMostNames)
      return wrong(fmt::format("1 to {} values can be named", kMostNames), "", path + "/any_of");
    for (std::size_t j = 0; j < attribute.any_of.size(); ++j)
      if (attribute.any_of[j].empty() || attribute.any_of[j].size() > kLongestName)
        return wrong(fmt::format("A value has 1 to {} bytes", kLongestName), "",
                     fmt::format("{}/any_of/{}", path, j));
  }
  return {};
}

}  // namespace

Status validate(const Request& request) {
  DROVER_CHECK_OK(check_claims(request));
  DROVER_CHECK_OK(check_share(request.share));
  DROVER_CHECK_OK(check_preferences(request));
  DROVER_CHECK_OK(check_host(request));
  DROVER_CHECK_OK(check_attributes(request));
  if (request.group.size() > kLongestName)
    return wrong(fmt::format("The name of a group has at most {} bytes", kLongestName), "", "/group");
  return {};
}

void set_gpus(Request& request, int count) {
  request.gpus.front().count = count;
  if (count > 1) return;
  request.interconnect = {};
  request.different_models = false;
}

}  // namespace drover::placement
