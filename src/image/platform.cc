#include "image/platform.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "image/text.h"

namespace drover::image {
namespace {

bool suits(const Descriptor& image, const std::string& architecture) {
  if (!image.platform) return true;  // its configuration will say
  const auto& platform = *image.platform;
  return (platform.os.empty() || platform.os == "linux") &&
         (platform.architecture.empty() || platform.architecture == architecture);
}

/// The lower, the sooner taken. A variant that only newer machines run comes last: none may be left out, for
/// what a machine runs is for its kernel to say.
int rank(const Descriptor& image, const std::string& architecture) {
  using Variants = std::vector<std::string_view>;
  static const std::map<std::string_view, Variants> kBestFirst = {
      {"amd64", {"", "v1", "v2", "v3"}}, {"arm64", {"v8", "", "v9"}}, {"arm", {"v7", "v6", "", "v5"}}};
  constexpr int kUnknown = 100;
  if (!image.platform) return 2 * kUnknown;
  const auto known = kBestFirst.find(architecture);
  const auto& variant = image.platform->variant;
  if (known == kBestFirst.end()) return variant.empty() ? 0 : kUnknown;
  const auto found = std::ranges::find(known->second, variant);
  return found == known->second.end() ? kUnknown : static_cast<int>(found - known->second.begin());
}

std::string list_platforms(const std::vector<Descriptor>& images) {
  std::set<std::string> platforms;
  for (const auto& image : images)
    if (image.platform)
      platforms.insert(printable(fmt::format("{}/{}", image.platform->os, image.platform->architecture)));
  return fmt::format("{}", fmt::join(platforms, ", "));
}

}  // namespace

Result<std::vector<Descriptor>> for_machine(const std::vector<Descriptor>& images,
                                            const std::string& architecture) {
  std::multimap<int, Descriptor> by_rank;  // those of one rank in their own order
  for (const auto& image : images)
    if (suits(image, architecture)) by_rank.emplace(rank(image, architecture), image);
  if (by_rank.empty())
    return fail(ErrorKind::kUnsupported,
                fmt::format("there is no image for this machine (linux/{}), only for {}", architecture,
                            list_platforms(images)));
  std::vector<Descriptor> found;
  for (auto& [ignored, image] : by_rank) found.push_back(std::move(image));
  return found;
}

std::string architecture_of_machine() {
  utsname info{};
  ::uname(&info);
  return go_architecture(info.machine);
}

}  // namespace drover::image
