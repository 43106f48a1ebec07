#include "base/users.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/name_service.h"

namespace drover {
namespace {

User from_passwd(const passwd& entry) {
  User user{entry.pw_uid, entry.pw_gid, {}, entry.pw_name, entry.pw_dir};
  int count = 64;
  do user.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0 &&
         count > static_cast<int>(user.groups.size()));
  user.groups.resize(std::min(user.groups.size(), static_cast<std::size_t>(std::max(count, 0))));
  std::erase(user.groups, entry.pw_gid);
  std::sort(user.groups.begin(), user.groups.end());
  return user;
}

Result<std::optional<User>> look_up(const AskNameService<passwd>& ask, const std::string& who) {
  std::optional<User> user;
  const auto found = ask_name_service<passwd>(ask, [&](const passwd& entry) { user = from_passwd(entry); });
  if (!found) return Failure(context(found.error(), fmt::format("Failed to look up user '{}'", who)));
  return user;
}

}  // namespace

Result<User> find_user(const std::string& name_or_uid) {
  DROVER_TRY(auto known, look_up(
                             [&](passwd* entry, char* buffer, std::size_t size, passwd** found) {
                               return ::getpwnam_r(name_or_uid.c_str(), entry, buffer, size, found);
                             },
                             name_or_uid));
  if (known) return std::move(*known);
  uid_t uid = 0;
  const auto* end = name_or_uid.data() + name_or_uid.size();
  const auto [stop, error] = std::from_chars(name_or_uid.data(), end, uid);
  if (error == std::errc() && stop == end && uid != static_cast<uid_t>(-1)) return user_of(uid, uid);
  return fail(ErrorKind::kNotFound, fmt::format("There is no user '{}' on this machine", name_or_uid),
              "name a user that 'getent passwd' lists, or give a uid");
}

Result<User> user_of(uid_t uid, gid_t fallback_gid) {
  DROVER_TRY(auto known,
             look_up([uid](passwd* entry, char* buffer, std::size_t size,
                           passwd** found) { return ::getpwuid_r(uid, entry, buffer, size, found); },
                     std::to_string(uid)));
  return known ? std::move(*known) : User{uid, fallback_gid, {}, std::to_string(uid), "/"};
}

}  // namespace drover
