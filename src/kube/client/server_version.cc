#include "kube/client/server_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/shorten.h"

namespace drover::kube {
namespace {

/// Some who build it themselves put a "+" behind: "35+".
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

Result<ServerVersion> server_version(Api& api) {
  DROVER_TRY(const auto info, api.get({{"", "", "version"}}));
  const auto major = text_at(info, "/major");
  const auto minor = text_at(info, "/minor");
  const auto first = leading_number(major);
  const auto second = leading_number(minor);
  if (!first || !second)
    return fail(ErrorKind::kUnavailable, fmt::format("the API server says that its version is '{}.{}'",
                                                     shortened(major), shortened(minor)));
  return ServerVersion{*first, *second};
}

Result<bool> is_served(Api& api, const Resource& resource) {
  const auto group = api.get({{resource.group, resource.version, ""}});
  if (!group && group.error().kind == ErrorKind::kNotFound) return false;
  if (!group) return Failure(group.error());
  const auto resources = group->find("resources");
  return resources != group->end() && std::ranges::any_of(*resources, [&](const nlohmann::json& served) {
           return text_at(served, "/name") == resource.plural;
         });
}

}  // namespace drover::kube
