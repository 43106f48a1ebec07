#include "fuzz.h"
#include "image/registry/challenge.h"
#include "image/registry/docker_config.h"
#include "image/registry/endpoint.h"
#include "image/registry/name.h"
#include "image/registry/token.h"

/// Whatever registries, their users and their token servers say. A name is written so that it is read again
/// as the same; what comes out and goes into a header or a URL can stand there.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  using namespace drover::image;
  const auto text = fuzz::text_of(data, size);
  const auto fits = [](std::string_view value) {
    return value.find_first_of("\r\n") == std::string_view::npos;
  };

  if (const auto name = parse_registry_name(text)) {
    fuzz::require(parse_registry_name(name->canonical()) == *name);
    fuzz::require(parse_registry_name(name->familiar()) == *name);
    fuzz::require(name->repository.find("..") == std::string::npos);
    fuzz::require(origin_of(registry_origin(name->host, PlainRegistries()).url()).has_value());
  }
  for (const auto& challenge : parse_challenges(text)) fuzz::require(!challenge.scheme.empty());
  for (const auto* host : {"docker.io", "a.b:5000"})
    if (const auto login = find_login(text, host))
      for (const auto& header : make_token_request("https://a.b", "s", "r", *login).headers)
        fuzz::require(fits(header));
  if (const auto token = read_token(text)) fuzz::require(fits(*token) && !token->empty());
  fuzz::require(fits(registry_message(text)));
  if (const auto origin = origin_of(text)) fuzz::require(origin_of(origin->url()) == *origin);
  return 0;
}
