#include "base/users.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>

namespace drover {
namespace {

User from_passwd(const passwd& entry) {
  User user{entry.pw_uid, entry.pw_gid, {}, entry.pw_name, entry.pw_dir};
  int count = 64;
  user.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0) {
    user.groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count);
  }
  user.groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  std::erase(user.groups, entry.pw_gid);
  std::sort(user.groups.begin(), user.groups.end());
  return user;
}

}  // namespace

Result<User> find_user(const std::string& name_or_uid) {
  std::vector<char> buffer(65536);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(name_or_uid.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return from_passwd(*found);
  uid_t uid = 0;
  const auto* end = name_or_uid.data() + name_or_uid.size();
  const auto [stop, error] = std::from_chars(name_or_uid.data(), end, uid);
  if (error == std::errc() && stop == end && uid != static_cast<uid_t>(-1)) return user_of(uid, uid);
  return fail(ErrorKind::kNotFound, fmt::format("There is no user '{}' on this machine", name_or_uid),
              "name a user that 'getent passwd' lists, or give a uid");
}

User user_of(uid_t uid, gid_t fallback_gid) {
  std::vector<char> buffer(65536);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return from_passwd(*found);
  return User{uid, fallback_gid, {}, std::to_string(uid), "/"};
}

}  // namespace drover
