#include "kube/client/server_version.h"

#include <fmt/format.h>

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

}  // namespace drover::kube
