#include "cel/selector.h"

#include "fuzz.h"

/// A selector, asked about a device. What it answers once it answers again.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto selector = cel::Selector::compile(fuzz::text_of(data, size));
  if (!selector) return 0;
  cel::Device device;
  device.driver = "gpu.nvidia.com";
  device.attributes = {{"type", "gpu"},
                       {"index", std::int64_t{1}},
                       {"version", cel::Version{"1.2.3"}},
                       {"names", std::vector<std::string>{"a", "b"}}};
  device.capacity = {{"memory", Quantity(1 << 30)}};
  const auto first = selector->matches(device), second = selector->matches(device);
  fuzz::require(first.has_value() == second.has_value() && (!first || *first == *second));
  return 0;
}
