#include "driver/cuda_drivers.h"

#include <algorithm>
#include <array>
#include <ranges>

namespace drover::driver {
namespace {

// The drivers are those of table 3 of NVIDIA's "CUDA Toolkit Release Notes" (docs.nvidia.com/cuda/
// cuda-toolkit-release-notes, "CUDA Toolkit and Corresponding Driver Versions", column Linux x86_64), as of
// CUDA 13.4; of several updates of a release the first one counts. Where editions differ it is the older
// number, which is what such drivers say of themselves: 9.1 is 387.26 in the notes of CUDA 9.2 and 390.46
// later. CUDA 6.5 is from the wiki of nvidia-docker ("CUDA", "Requirements"). Compute capabilities are what
// the same notes list as removed.
constexpr std::array<CudaRelease, 33> kReleases{{
    {"6.5", "340.29", {1, 1}},     {"7.0", "346.46", {2, 0}},     {"7.5", "352.31", {2, 0}},
    {"8.0", "367.48", {2, 0}},     {"9.0", "384.81", {3, 0}},     {"9.1", "387.26", {3, 0}},
    {"9.2", "396.26", {3, 0}},     {"10.0", "410.48", {3, 0}},    {"10.1", "418.39", {3, 0}},
    {"10.2", "440.33", {3, 0}},    {"11.0", "450.36.06", {3, 5}}, {"11.1", "455.23", {3, 5}},
    {"11.2", "460.27.03", {3, 5}}, {"11.3", "465.19.01", {3, 5}}, {"11.4", "470.42.01", {3, 5}},
    {"11.5", "495.29.05", {3, 5}}, {"11.6", "510.39.01", {3, 5}}, {"11.7", "515.43.04", {3, 5}},
    {"11.8", "520.61.05", {3, 5}}, {"12.0", "525.60.13", {5, 0}}, {"12.1", "530.30.02", {5, 0}},
    {"12.2", "535.54.03", {5, 0}}, {"12.3", "545.23.06", {5, 0}}, {"12.4", "550.54.14", {5, 0}},
    {"12.5", "555.42.02", {5, 0}}, {"12.6", "560.28.03", {5, 0}}, {"12.8", "570.26", {5, 0}},
    {"12.9", "575.51.03", {5, 0}}, {"13.0", "580.65.06", {7, 5}}, {"13.1", "590.44.01", {7, 5}},
    {"13.2", "595.45.04", {7, 5}}, {"13.3", "610.43.02", {7, 5}}, {"13.4", "616.00", {7, 5}},
}};

/// Table 2 there: the oldest driver for any CUDA of a major number.
struct MinorCompatibility {
  std::uint32_t major;
  std::string_view driver;
};
constexpr std::array<MinorCompatibility, 3> kMinorCompatibility{
    {{11, "450.80.02"}, {12, "525.60.13"}, {13, "580"}}};

Version version_of(std::string_view text) {
  return Version::parse(text).value_or(Version());
}

std::string_view any_of_major(std::uint32_t major) {
  const auto* const found = std::ranges::find(kMinorCompatibility, major, &MinorCompatibility::major);
  return found == kMinorCompatibility.end() ? std::string_view() : found->driver;
}

}  // namespace

std::span<const CudaRelease> cuda_releases() {
  return kReleases;
}

std::string newest_cuda(const std::string& driver) {
  const auto version = Version::parse(driver);
  for (const auto& release : std::views::reverse(kReleases))
    if (version && *version >= version_of(release.driver)) return std::string(release.cuda);
  return "";
}

bool runs_cuda(const std::string& driver, const std::string& serves, const Version& cuda) {
  const auto version = Version::parse(driver);
  const auto served = Version::parse(serves.empty() ? newest_cuda(driver) : serves);
  if (served && *served >= cuda) return true;
  const auto floor = any_of_major(cuda.major());
  return version && !floor.empty() && *version >= version_of(floor);
}

std::string oldest_driver_for(const Version& cuda) {
  const auto* const release =
      std::ranges::find_if(kReleases, [&](const CudaRelease& each) { return version_of(each.cuda) >= cuda; });
  std::string_view oldest = release == kReleases.end() ? std::string_view() : release->driver;
  const auto floor = any_of_major(cuda.major());
  if (!floor.empty() && (oldest.empty() || version_of(floor) < version_of(oldest))) oldest = floor;
  return std::string(oldest);
}

gpu::ComputeCapability oldest_capability(const Version& cuda) {
  gpu::ComputeCapability oldest;
  for (const auto& release : kReleases)
    if (version_of(release.cuda) <= cuda) oldest = release.oldest;
  return oldest;
}

}  // namespace drover::driver
