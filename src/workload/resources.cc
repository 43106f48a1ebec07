#include "workload/resources.h"

#include <algorithm>
#include <charconv>
#include <climits>

namespace drover::workload {

int Resources::gpu_count() const {
  std::int64_t sum = 0;
  for (const auto& claim : gpus) sum = std::min<std::int64_t>(sum + claim.count, INT_MAX);
  return static_cast<int>(std::max<std::int64_t>(sum, 0));
}

std::optional<Share> share_of_part(std::string_view profile) {
  constexpr int kSlices = 7;
  constexpr std::string_view kSuffix = "abcdefghijklmnopqrstuvwxyz.-";
  int slices = 0;
  int memory = 0;
  const char* const end = profile.data() + profile.size();
  const auto first = std::from_chars(profile.data(), end, slices);
  std::string_view rest(first.ptr, static_cast<std::size_t>(end - first.ptr));
  if (first.ec != std::errc() || slices < 1 || slices > kSlices || !rest.starts_with("g."))
    return std::nullopt;
  const auto second = std::from_chars(rest.data() + 2, end, memory);
  rest = {second.ptr, static_cast<std::size_t>(end - second.ptr)};
  if (second.ec != std::errc() || memory < 1 || !rest.starts_with("gb")) return std::nullopt;
  if (rest.size() > 16 || rest.find_first_not_of(kSuffix) != std::string_view::npos) return std::nullopt;
  return Share{.milli = slices * 1000 / kSlices};
}

Share held_of(const Share& share, std::uint64_t memory_bytes) {
  if (share.memory_bytes == 0) {
    const auto milli = static_cast<std::uint64_t>(share.milli);
    return {share.milli, memory_bytes / 1000 * milli + memory_bytes % 1000 * milli / 1000};
  }
  if (share.memory_bytes > memory_bytes) return {0, 0};
  __extension__ using Wide = unsigned __int128;
  return {static_cast<int>(Wide{share.memory_bytes} * 1000 / memory_bytes), share.memory_bytes};
}

}  // namespace drover::workload
