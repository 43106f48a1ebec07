#include "driver/requirement.h"

#include "fuzz.h"

/// Conditions of an image: they are understood or refused with a reason, and what is not known meets them.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto requirement = driver::Requirement::parse(fuzz::text_of(data, size));
  if (!requirement) {
    fuzz::require(!requirement.error().message.empty() && !requirement.error().hint.empty());
    return 0;
  }
  fuzz::require(requirement->met_by({}));
  (void)requirement->met_by({.cuda = "12.2", .driver = "535.54.03", .arch = "7.0", .brand = "tesla"});
  return 0;
}
