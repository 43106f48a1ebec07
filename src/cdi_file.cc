#include "cdi_file.h"

#include <spdlog/spdlog.h>

#include "base/files.h"
#include "cdi/write.h"

namespace drover {

void CdiFile::keep(const Result<cdi::Specification>& specification) {
  const auto written = specification ? write(*specification) : Status(Failure(specification.error()));
  const auto trouble = written ? "" : to_string(written.error());
  if (!trouble.empty() && trouble != trouble_)
    spdlog::warn("The CDI specification in '{}' is not up to date: {}", path_, trouble);
  trouble_ = trouble;
}

Status CdiFile::write(const cdi::Specification& specification) const {
  const auto text = cdi::write_specification(specification, cdi::format_of_file(path_));
  if (read_file(path_) == text) return {};
  DROVER_CHECK_OK(write_file(path_, text));
  spdlog::info("The CDI specification in '{}' is new", path_);
  return {};
}

}  // namespace drover
