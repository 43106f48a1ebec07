#include "control/resource_amounts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace drover::control {
namespace {

constexpr std::int64_t kLeastMilliCpus = 10;
constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kLeastMemory = 32 * kMiB;

bool has_port(const std::vector<PortRange>& ranges, const PortRange& wanted) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const PortRange& range) {
    return range.begin <= wanted.begin && wanted.end <= range.end;
  });
}

std::vector<PortRange> merged(std::vector<PortRange> ranges) {
  std::ranges::sort(ranges, {}, &PortRange::begin);
  std::vector<PortRange> result;
  for (const auto& range : ranges)
    if (!result.empty() && range.begin <= result.back().end + 1)
      result.back().end = std::max(result.back().end, range.end);
    else
      result.push_back(range);
  return result;
}

std::vector<PortRange> without(const std::vector<PortRange>& ranges, const PortRange& taken) {
  std::vector<PortRange> result;
  for (const auto& range : ranges) {
    if (taken.end < range.begin || range.end < taken.begin) {
      result.push_back(range);
      continue;
    }
    if (range.begin < taken.begin) result.push_back({range.begin, taken.begin - 1});
    if (taken.end < range.end) result.push_back({taken.end + 1, range.end});
  }
  return result;
}

template <typename T>
T at_least_zero(T from, T what) {
  return from > what ? from - what : T{0};
}

}  // namespace

bool ResourceAmounts::covers(const ResourceAmounts& wanted) const {
  return wanted.gpus <= gpus && wanted.milli_cpus <= milli_cpus && wanted.memory_bytes <= memory_bytes &&
         wanted.disk_bytes <= disk_bytes &&
         std::all_of(wanted.ports.begin(), wanted.ports.end(),
                     [&](const PortRange& range) { return has_port(ports, range); });
}

ResourceAmounts& ResourceAmounts::operator+=(const ResourceAmounts& other) {
  gpus += other.gpus;
  milli_cpus += other.milli_cpus;
  memory_bytes += other.memory_bytes;
  disk_bytes += other.disk_bytes;
  if (other.ports.empty()) return *this;
  ports.insert(ports.end(), other.ports.begin(), other.ports.end());
  ports = merged(std::move(ports));
  return *this;
}

ResourceAmounts& ResourceAmounts::operator-=(const ResourceAmounts& other) {
  gpus = at_least_zero(gpus, other.gpus);
  milli_cpus = at_least_zero(milli_cpus, other.milli_cpus);
  memory_bytes = at_least_zero(memory_bytes, other.memory_bytes);
  disk_bytes = at_least_zero(disk_bytes, other.disk_bytes);
  for (const auto& range : other.ports) ports = without(ports, range);
  return *this;
}

bool ResourceAmounts::worth_offering() const {
  return milli_cpus >= kLeastMilliCpus || memory_bytes >= kLeastMemory;
}

std::string to_string(const ResourceAmounts& amounts) {
  std::vector<std::string> parts;
  if (amounts.gpus != 0) parts.push_back(fmt::format("gpus:{}", amounts.gpus));
  if (amounts.milli_cpus != 0)
    parts.push_back(fmt::format("cpus:{:g}", static_cast<double>(amounts.milli_cpus) / 1000));
  if (amounts.memory_bytes != 0) parts.push_back(fmt::format("mem:{}", amounts.memory_bytes / kMiB));
  if (amounts.disk_bytes != 0) parts.push_back(fmt::format("disk:{}", amounts.disk_bytes / kMiB));
  std::vector<std::string> ranges;
  for (const auto& range : amounts.ports) ranges.push_back(fmt::format("{}-{}", range.begin, range.end));
  if (!ranges.empty()) parts.push_back(fmt::format("ports:[{}]", fmt::join(ranges, ", ")));
  return parts.empty() ? "{}" : fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace drover::control
