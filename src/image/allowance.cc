#include "image/allowance.h"

#include <fmt/format.h>

#include "base/units.h"

namespace drover::image {

Status Allowance::check() const {
  if (stop_.stop_requested()) return fail(ErrorKind::kUnavailable, "it was stopped");
  return {};
}

Status Allowance::take_bytes(std::uint64_t bytes) {
  DROVER_CHECK_OK(check());
  if (bytes_ += bytes; bytes_ <= limits_.bytes) return {};
  return fail(ErrorKind::kExhausted,
              fmt::format("the image holds more than {} when unpacked, the most that one may hold",
                          format_bytes(limits_.bytes)),
              "if it is honest, raise 'drover serve --max-image-size'");
}

Status Allowance::take_entry() {
  DROVER_CHECK_OK(check());
  if (++entries_ <= limits_.entries) return {};
  return fail(ErrorKind::kExhausted,
              fmt::format("the image has more than {} files, the most that one may have", limits_.entries),
              "if it is honest, raise 'drover serve --max-image-files'");
}

}  // namespace drover::image
