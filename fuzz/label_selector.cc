#include "api/marathon/label_selector.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  using Kind = api::marathon_v2::LabelRule::Kind;
  const auto rules = api::marathon_v2::parse_label_selector(fuzz::text_of(data, size));
  if (!rules) {
    fuzz::require(!rules.error().message.empty());
    return 0;
  }
  for (const auto& rule : *rules) {
    fuzz::require(!rule.label.empty());
    fuzz::require(rule.values.empty() == (rule.kind == Kind::kExists));
    const bool holds =
        api::marathon_v2::matches({rule}, {{rule.label, rule.values.empty() ? "" : rule.values.front()}});
    fuzz::require(holds == (rule.kind != Kind::kNotIn));
  }
  return 0;
}
