#include "kube/scheduler/claims/selectors.h"

namespace drover::kube::scheduler {
namespace {

constexpr std::size_t kMostSelectors = 256;
enum Answer : std::uint8_t { kNotAsked, kYes, kNo };  // what fails is asked again: the error is long

Result<cel::Device> seen_by_selectors(const DeviceKind& kind) {
  cel::Device device{kind.driver, {}, {}, kind.shared};
  for (const auto& attribute : kind.attributes) device.attributes.emplace(attribute->name, attribute->value);
  for (const auto& capacity : kind.capacities) {
    DROVER_TRY(auto value, Quantity::parse(capacity->value.text));
    device.capacity.emplace(capacity->name, value);
  }
  return device;
}

}  // namespace

class Selectors::Compiled {
 public:
  std::uint64_t epoch;
  std::size_t index;
  Result<cel::Selector> selector;
};

Selectors::Handle Selectors::compiled(const std::string& expression) {
  if (const auto found = compiled_.find(expression); found != compiled_.end()) return found->second;
  if (compiled_.size() >= kMostSelectors) {
    compiled_.clear();
    ++epoch_;
  }
  auto made = std::make_shared<const Compiled>(
      Compiled{epoch_, compiled_.size(), cel::Selector::compile(expression)});
  return compiled_.emplace(expression, std::move(made)).first->second;
}

Result<bool> Selectors::matches(const Compiled& compiled, const DeviceKind& kind) {
  const auto& [epoch, index, selector] = compiled;
  if (!selector) return Failure(selector.error());
  auto& answers = kind.answers;
  if (answers.epoch != epoch) answers = {epoch, {}};
  if (answers.by_selector.size() <= index) answers.by_selector.resize(index + 1, kNotAsked);
  auto& answer = answers.by_selector[index];
  if (answer != kNotAsked) return answer == kYes;
  DROVER_TRY(const auto device, seen_by_selectors(kind));
  ++evaluations_;
  DROVER_TRY(const auto matches, selector->matches(device));
  answer = matches ? kYes : kNo;
  return matches;
}

}  // namespace drover::kube::scheduler
