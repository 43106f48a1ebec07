#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto value = parse_json(fuzz::text_of(data, size), "It");
  if (value)
    fuzz::require(parse_json(value->dump(), "It") == *value);
  else
    fuzz::require(value.error().message.size() + value.error().path.size() < 2000);
  return 0;
}
