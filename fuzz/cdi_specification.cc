#include "cdi/decode.h"
#include "cdi/write.h"
#include "fuzz.h"

/// What was read is written and read again as the same, in both formats.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto specification = cdi::decode_specification(fuzz::text_of(data, size), "It");
  if (!specification) {
    fuzz::require(!specification.error().message.empty());
    return 0;
  }
  for (const auto format : {cdi::Format::kJson, cdi::Format::kYaml}) {
    const auto again = cdi::decode_specification(cdi::write_specification(*specification, format), "It");
    fuzz::require(again && *again == *specification);
  }
  return 0;
}
