#include "container/docker/image_probe.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "image/tar.h"

namespace drover::container::docker {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestFile = 1 << 20;
constexpr std::size_t kMostStats = 4096;

/// Links that loaders look for, and folders that are looked through.
constexpr std::array<std::string_view, 2> kLinks = {"libcuda.so.1", "libnvidia-ml.so.1"};
constexpr std::array<std::string_view, 4> kFolders = {"x86_64-linux-gnu", "aarch64-linux-gnu",
                                                      "powerpc64le-linux-gnu", "cuda"};

/// A text as a stream.
class TextStream final : public image::ByteStream {
 public:
  explicit TextStream(std::string_view text) : text_(text) {}
  Result<std::string_view> next() override { return std::exchange(text_, {}); }

 private:
  std::string_view text_;
};

/// The file that a tar archive holds; "" when it holds another thing.
Result<std::string> only_file(std::string_view archive, const std::string& path) {
  if (archive.empty()) return "";
  TextStream stream(archive);
  image::TarReader reader(stream);
  DROVER_TRY(const auto entry, reader.next());
  std::string text;
  if (!entry || entry->type == image::TarEntry::Type::kSymlink) return text;
  if (entry->type != image::TarEntry::Type::kFile)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' of the image is no regular file", path),
                "rebuild the image");
  while (true) {
    DROVER_TRY(const auto block, reader.block());
    if (block.bytes.empty() || text.size() + block.bytes.size() > kLongestFile) return text;
    text += block.bytes;
  }
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

ImageProbe::ImageProbe(const Engine& engine, std::string image_id, std::string name,
                       std::map<std::string, std::string> labels, std::shared_ptr<SeenOfImage> seen)
    : engine_(engine),
      image_id_(std::move(image_id)),
      name_(std::move(name)),
      labels_(std::move(labels)),
      seen_(std::move(seen)) {}

ImageProbe::~ImageProbe() {
  if (!container_.empty()) (void)engine_.remove(container_);
}

Result<std::string> ImageProbe::container() {
  if (!container_.empty()) return container_;
  const json body = {{"Image", image_id_},
                     {"Entrypoint", {"/"}},
                     {"Labels", labels_},
                     {"HostConfig", {{"NetworkMode", "none"}}}};
  DROVER_CHECK_OK(engine_.remove(name_));  // of a daemon that died meanwhile
  DROVER_TRY(container_, engine_.create(name_, body.dump()));
  return container_;
}

Result<std::string> ImageProbe::read(const std::string& path) {
  const std::lock_guard lock(seen_->mutex);
  if (const auto known = seen_->files.find(path); known != seen_->files.end()) return known->second;
  DROVER_TRY(const auto id, container());
  DROVER_TRY(const auto archive, engine_.copy_out(id, path));
  DROVER_TRY(auto text, only_file(archive, path));
  return seen_->files[path] = std::move(text);
}

Result<std::optional<PathStat>> ImageProbe::stat(const std::string& path) {
  const std::lock_guard lock(seen_->mutex);
  if (const auto known = seen_->stats.find(path); known != seen_->stats.end()) return known->second;
  DROVER_TRY(const auto id, container());
  DROVER_TRY(const auto found, engine_.stat(id, path));
  if (seen_->stats.size() >= kMostStats) seen_->stats.clear();
  return seen_->stats[path] = found;
}

Result<std::string> ImageProbe::target_of_link(const std::string& path) {
  const std::lock_guard lock(seen_->mutex);
  if (const auto known = seen_->links.find(path); known != seen_->links.end()) return known->second;
  DROVER_TRY(const auto id, container());
  DROVER_TRY(const auto archive, engine_.copy_out(id, path));
  TextStream stream(archive);
  image::TarReader reader(stream);
  DROVER_TRY(const auto entry, reader.next());
  if (!entry || entry->type != image::TarEntry::Type::kSymlink || entry->link_target.empty())
    return fail(ErrorKind::kUnsupported,
                fmt::format("The Docker Engine does not say where the link '{}' of the image leads", path),
                "choose a path without links");
  if (seen_->links.size() >= kMostStats) seen_->links.clear();
  return seen_->links[path] = entry->link_target;
}

Result<ImagePath> ImageProbe::walk(const std::string& path) {
  return follow(path, [this](const std::string& step) -> Result<std::optional<ImageEntry>> {
    DROVER_TRY(const auto found, stat(step));
    if (!found) return std::nullopt;
    if (found->kind != PathStat::Kind::kLink) return ImageEntry{};
    DROVER_TRY(auto target, target_of_link(step));
    return ImageEntry{std::move(target)};
  });
}

Result<std::vector<image::MergedEntry>> ImageProbe::list(
    const std::string& folder, const std::function<bool(std::string_view)>& wanted) {
  using Kind = image::MergedEntry::Kind;
  std::vector<image::MergedEntry> entries;
  DROVER_TRY(const auto there, stat(folder));
  if (!there) return entries;
  for (const auto link : kLinks) {
    DROVER_TRY(const auto found, stat(fmt::format("{}/{}", folder, link)));
    if (!found || !wanted(last_name(found->link_target))) continue;
    DROVER_TRY(const auto library, stat(found->link_target));
    if (library && library->kind == PathStat::Kind::kFile)
      entries.push_back({last_name(found->link_target), Kind::kFile, library->size});
  }
  for (const auto name : kFolders) {
    if (!wanted(name)) continue;
    DROVER_TRY(const auto found, stat(fmt::format("{}/{}", folder, name)));
    if (found && (found->kind == PathStat::Kind::kFolder || found->kind == PathStat::Kind::kLink))
      entries.push_back({std::string(name), Kind::kFolder, 0});
  }
  return entries;
}

}  // namespace drover::container::docker
