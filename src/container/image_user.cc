#include "container/image_user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/open_path.h"
#include "container/environment.h"

namespace drover::container {
namespace {

constexpr std::uint64_t kMaxDatabase = 1ULL << 20;

std::vector<std::string_view> fields_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == UINT32_MAX) return std::nullopt;
  return value;
}

/// The fields of the first line of passwd(5) or group(5) whose name, or else whose number, is `key`.
std::vector<std::string_view> find_entry(std::string_view database, std::string_view key,
                                         std::size_t field_count) {
  for (const std::size_t field : {0, 2})
    for (const auto line : fields_of(database, '\n'))
      if (auto fields = fields_of(line, ':'); fields.size() >= field_count && fields[field] == key)
        return fields;
  return {};
}

constexpr std::size_t kPasswdFields = 7;
constexpr std::size_t kGroupFields = 4;

std::vector<gid_t> groups_of(std::string_view group, std::string_view name) {
  std::vector<gid_t> groups;
  for (const auto line : fields_of(group, '\n')) {
    const auto fields = fields_of(line, ':');
    if (fields.size() < kGroupFields) continue;
    const auto members = fields_of(fields[3], ',');
    const auto gid = number(fields[2]);
    if (gid && std::find(members.begin(), members.end(), name) != members.end()) groups.push_back(*gid);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

Failure unknown(std::string_view kind, std::string_view name) {
  return fail(ErrorKind::kInvalid, fmt::format("The image names {} '{}' and does not know it", kind, name),
              "rebuild the image, or name a user with the task");
}

/// nullopt: not in this layer. "" also when the layer removes it. What is there must be a file: runtimes open
/// it too, and would wait at a fifo.
Result<std::optional<std::string>> read_layer_file(const std::string& layer, const std::string& path) {
  const UniqueFd root(::open(layer.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (::fstatat(root.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(info.st_mode))
    return "";  // overlayfs marks a removed file by a device
  const auto file =
      open_path(root.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return std::nullopt;
  if (!file.valid() || ::fstat(file.get(), &info) != 0)
    return fail_errno(fmt::format("Failed to read '/{}' of the image", path), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'/{}' of the image is no regular file", path),
                "rebuild the image");
  return read_all(file.get(), path, kMaxDatabase).value_or("");
}

}  // namespace

Result<std::string> read_image_file(const image::Image& image, const std::string& path) {
  for (auto layer = image.layers.rbegin(); layer != image.layers.rend(); ++layer) {
    DROVER_TRY(const auto text, read_layer_file(*layer, path));
    if (text) return *text;
  }
  return "";
}

Result<User> parse_image_user(std::string_view text, std::string_view passwd, std::string_view group) {
  const auto colon = text.find(':');
  const auto user_name = text.substr(0, colon);
  const auto group_name = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  User user;
  user.name = user_name;
  if (const auto entry = find_entry(passwd, user_name, kPasswdFields); !entry.empty()) {
    const auto uid = number(entry[2]), gid = number(entry[3]);
    if (!uid || !gid) return unknown("user", user_name);
    user = User{*uid, *gid, groups_of(group, entry[0]), std::string(entry[0]), std::string(entry[5])};
  } else if (const auto uid = number(user_name)) {
    user.uid = *uid;
  } else {
    return unknown("user", user_name);
  }
  if (group_name.empty()) return user;
  const auto entry = find_entry(group, group_name, kGroupFields);
  const auto gid = number(entry.empty() ? group_name : entry[2]);
  if (!gid) return unknown("group", group_name);
  user.gid = *gid;
  user.groups.clear();
  return user;
}

Result<User> user_in_image(const workload::Task& task, const image::Image& image) {
  DROVER_TRY(const auto passwd, read_image_file(image, "etc/passwd"));
  DROVER_TRY(const auto group, read_image_file(image, "etc/group"));
  return user_in_image(task, image.config.user, passwd, group);
}

Result<User> user_in_image(const workload::Task& task, const std::string& image_user, std::string_view passwd,
                           std::string_view group) {
  if (task.owner == 0 && task.user.uid == 0 && !image_user.empty())
    return parse_image_user(image_user, passwd, group);
  auto user = task.user;
  user.groups.clear();
  const auto entry = find_entry(passwd, std::to_string(user.uid), kPasswdFields);
  user.home = entry.empty() ? kSandboxMount : std::string(entry[5]);
  if (!entry.empty()) user.name = entry[0];
  return user;
}

}  // namespace drover::container
