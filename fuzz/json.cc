#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_items.h"
#include "fuzz.h"

namespace {

/// As if "b" in each object that stands as "a" had been left out.
void take_out(nlohmann::json& value) {
  if (const auto parent = value.find("a"); value.is_object() && parent != value.end() && parent->is_object())
    parent->erase("b");
  if (!value.is_structured()) return;
  for (auto& child : value) take_out(child);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto text = fuzz::text_of(data, size);
  const auto value = parse_json(text, "It");
  if (!value) {
    fuzz::require(value.error().message.size() + value.error().path.size() < 2000);
    return 0;
  }
  fuzz::require(parse_json(value->dump(), "It") == *value);
  auto rest = *value;
  take_out(rest);
  fuzz::require(parse_json(text, "It", {"a", "b"}) == rest);
  return 0;
}
