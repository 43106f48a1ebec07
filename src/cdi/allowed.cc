#include "cdi/allowed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/groups.h"

namespace drover::cdi {

Result<Allowed::Rule> Allowed::parse_rule(const std::string& text) {
  constexpr const char* kHint =
      "write it as [USER,@GROUP,...:]KIND[=NAME], like alice,@net:vendor.com/net=eth1";
  const auto wrong = [&](const Error& error) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' allows no device: {}", text, error.message), kHint,
                "--allow-device");
  };
  Rule rule;
  // A name of a device may have ':' in it, but a kind comes first, and that has a '/'.
  const auto colon = text.find(':');
  rule.everybody = colon == std::string::npos || text.find('/') < colon;
  auto device = rule.everybody ? text : text.substr(colon + 1);
  for (std::size_t begin = 0; !rule.everybody && begin <= colon;) {
    const auto end = std::min(text.find(',', begin), colon);
    const auto who = text.substr(begin, end - begin);
    begin = end + 1;
    if (who.starts_with('@')) {
      const auto group = find_group(who.substr(1));
      if (!group) return wrong(group.error());
      rule.groups.insert(*group);
      continue;
    }
    const auto user = find_user(who);
    if (!user) return wrong(user.error());
    rule.users.insert(user->uid);
  }
  if (device.find('=') == std::string::npos) {
    if (const auto good = check_kind(device); !good) return wrong(good.error());
    rule.kind = std::move(device);
    return rule;
  }
  auto name = parse_device_name(device);
  if (!name) return wrong(name.error());
  rule.kind = std::move(name->kind);
  rule.name = std::move(name->name);
  return rule;
}

Result<Allowed> Allowed::parse(const std::vector<std::string>& rules) {
  Allowed allowed;
  for (const auto& text : rules) {
    DROVER_TRY(auto rule, parse_rule(text));
    allowed.rules_.push_back(std::move(rule));
  }
  return allowed;
}

Status Allowed::check(const DeviceName& device, const User& user) const {
  const auto is_for_user = [&](const Rule& rule) {
    if (rule.kind != device.kind || (!rule.name.empty() && rule.name != device.name)) return false;
    return rule.everybody || rule.users.contains(user.uid) || rule.groups.contains(user.gid) ||
           std::ranges::any_of(user.groups, [&](gid_t group) { return rule.groups.contains(group); });
  };
  if (std::ranges::any_of(rules_, is_for_user)) return {};
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("The device '{}' is not for the user '{}'", to_string(device), user.name),
              fmt::format("an administrator allows it with 'drover serve --allow-device {}:{}'", user.name,
                          to_string(device)));
}

}  // namespace drover::cdi
