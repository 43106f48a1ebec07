// The JSON Schemas of what people write into files, for their editors. They hold nothing that is anybody's.

#include "schemas/schemas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "api/native/handlers.h"

namespace drover::api {

Result<Response> get_schema(const Services&, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  const std::string_view file = request.parameters.at("name");
  constexpr std::string_view kEnding = ".json";
  const auto found = schemas::texts().find(file.substr(0, file.rfind('.')));
  if (!file.ends_with(kEnding) || found == schemas::texts().end())
    return fail(ErrorKind::kNotFound, fmt::format("There is no schema '{}'", file),
                fmt::format("there are {}.json", fmt::join(std::views::keys(schemas::texts()), ".json, ")));
  Response response;
  response.content_type = "application/schema+json";
  response.body = found->second;
  return response;
}

}  // namespace drover::api
