#include "base/groups.h"

#include <fmt/format.h>
#include <grp.h>

#include <charconv>
#include <vector>

namespace drover {

Result<gid_t> find_group(const std::string& name_or_gid) {
  std::vector<char> buffer(1 << 20);  // all members are listed
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(name_or_gid.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return found->gr_gid;
  gid_t gid = 0;
  const auto* end = name_or_gid.data() + name_or_gid.size();
  const auto [stop, error] = std::from_chars(name_or_gid.data(), end, gid);
  if (error == std::errc() && stop == end && gid != static_cast<gid_t>(-1)) return gid;
  return fail(ErrorKind::kNotFound, fmt::format("There is no group '{}' on this machine", name_or_gid),
              "name a group that 'getent group' lists, or give a gid");
}

}  // namespace drover
