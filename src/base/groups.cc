#include "base/groups.h"

#include <fmt/format.h>

#include <charconv>

#include "base/name_service.h"
namespace drover {

Result<gid_t> find_group(const std::string& name_or_gid, const AskGroup& ask) {
  gid_t named = 0;
  const auto found = ask_name_service<group>(
      [&](group* entry, char* buffer, std::size_t size, group** answer) {
        return ask(name_or_gid.c_str(), entry, buffer, size, answer);
      },
      [&](const group& entry) { named = entry.gr_gid; });
  if (!found)
    return Failure(context(found.error(), fmt::format("Failed to look up group '{}'", name_or_gid)));
  if (*found) return named;
  gid_t gid = 0;
  const auto* end = name_or_gid.data() + name_or_gid.size();
  const auto [stop, error] = std::from_chars(name_or_gid.data(), end, gid);
  if (error == std::errc() && stop == end && gid != static_cast<gid_t>(-1)) return gid;
  return fail(ErrorKind::kNotFound, fmt::format("There is no group '{}' on this machine", name_or_gid),
              "name a group that 'getent group' lists, or give a gid");
}

}  // namespace drover
