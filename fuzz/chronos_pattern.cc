#include "chronos/pattern.h"
#include "fuzz.h"

/// A pattern, and behind a line's end what it is held against.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto text = fuzz::text_of(data, size);
  const auto end = std::min(text.find('\n'), text.size());
  const auto written = text.substr(0, end);
  const auto pattern = chronos::Pattern::parse(written);
  if (!pattern) return 0;
  (void)pattern->matches(text.substr(std::min(end + 1, text.size())));
  if (written.find_first_of("\\.|^$") == written.npos) fuzz::require(pattern->matches(written));
  return 0;
}
