#include "control/constraints.h"
#include "fuzz.h"

/// A kind, a value, and behind a line's end what a machine has of the attribute.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  if (size == 0) return 0;
  const auto kind = static_cast<workload::ConstraintKind>(data[0] % 7);
  const auto text = fuzz::text_of(data, size).substr(1);
  const auto end = std::min(text.find('\n'), text.size());
  const std::string value(text.substr(0, end)), has(text.substr(std::min(end + 1, text.size())));
  workload::Service service;
  service.constraints = {{"rack", kind, value}};
  const auto right = control::check_constraints(service);
  const control::MachineAttributes machine = {{"rack", {has, "r2"}}};
  const auto why = control::refusal(service.constraints.front(), machine, {machine, {{"rack", {"r1"}}}});
  if (why) fuzz::require(!why->empty());
  if (kind == workload::ConstraintKind::kLike && !right) fuzz::require(why.has_value());
  return 0;
}
