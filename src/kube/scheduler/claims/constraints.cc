#include "kube/scheduler/claims/constraints.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace drover::kube::scheduler {
namespace {

template <typename T>
bool has(const cel::Attribute& attribute, const T& value) {
  if (const auto* const one = std::get_if<T>(&attribute)) return *one == value;
  const auto* const several = std::get_if<std::vector<T>>(&attribute);
  return several != nullptr && std::ranges::find(*several, value) != several->end();
}

template <typename T>
constexpr bool is_list = false;
template <typename T>
constexpr bool is_list<std::vector<T>> = true;

/// Whether one of the values of `first` is among those of each of the others.
bool have_in_common(const cel::Attribute& first, const std::vector<const cel::Attribute*>& others) {
  const auto all_have = [&](const auto& value) {
    return std::ranges::all_of(others, [&](const auto* other) { return has(*other, value); });
  };
  return std::visit(
      [&]<typename T>(const T& values) {
        if constexpr (is_list<T>)
          return std::ranges::any_of(values,
                                     [&](const typename T::value_type& value) { return all_have(value); });
        else
          return all_have(values);
      },
      first);
}

}  // namespace

bool ConstraintState::concerns(const DeviceRequest& request, const DeviceWish& wish) const {
  const auto& requests = constraint_->requests;
  return requests.empty() || requests.contains(request.name) || requests.contains(full_name(request, wish));
}

bool ConstraintState::add(const DeviceKind& kind) {
  const auto* const added = attribute(kind, constraint_->attribute);
  if (added == nullptr) return false;
  const auto goes_along =
      constraint_->distinct
          ? std::ranges::none_of(attributes_,
                                 [&](const auto* other) { return have_in_common(*added, {other}); })
          : have_in_common(*added, attributes_);
  if (goes_along) attributes_.push_back(added);
  return goes_along;
}

}  // namespace drover::kube::scheduler
