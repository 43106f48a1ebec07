#pragma once

// How much of its capacities a device gives to whom: the rules of k8s.io/dynamic-resource-allocation for
// devices that several claims share. Pure.

#include <compare>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {

/// A quantity, and how it is written.
struct Amount {
  Nanos value = 0;
  std::string text = "0";

  auto operator<=>(const Amount&) const = default;
};
/// By the names of capacities.
using Amounts = std::map<std::string, Amount, std::less<>>;
/// nullopt where there is none.
std::optional<Amount> read_amount(FieldReader& reader, const nlohmann::json& object, const char* name);
Amounts read_amounts(FieldReader& reader, const nlohmann::json& object, const char* name);

/// From `min` on, in steps.
struct AmountRange {
  Amount min = {};
  std::optional<Amount> max = {};
  std::optional<Amount> step = {};

  auto operator<=>(const AmountRange&) const = default;
};

/// Of a device. How much of it may be asked for is limited by a range, by values in rising order, or not.
struct DeviceCapacity {
  std::string name = {};
  Amount value = {};
  std::optional<Amount> unasked = {};  ///< what is given to who asks for none; nullopt: all
  std::vector<Amount> values = {};
  std::optional<AmountRange> range = {};

  auto operator<=>(const DeviceCapacity&) const = default;
};
DeviceCapacity read_capacity(FieldReader& reader, std::string name, const nlohmann::json& capacity);

using DeviceCapacities = std::vector<std::shared_ptr<const DeviceCapacity>>;
/// Sums, by the names of capacities.
using Consumed = std::map<std::string, Nanos, std::less<>>;

/// What a share takes for which these amounts are asked, rounded up to what may be asked for. nullopt when
/// the device does not give that much, or does not have what is asked for; kInvalid for what cannot be
/// calculated. Steps of less than one count when `fractions` do: otherwise all is rounded up to whole
/// numbers.
Result<std::optional<Amounts>> consumption(const Amounts& asked, const DeviceCapacities& capacities,
                                           bool fractions);

/// Whether so much is left beside what others have.
bool is_left(const Amounts& wanted, const DeviceCapacities& capacities, const Consumed& consumed);

}  // namespace drover::kube::scheduler
