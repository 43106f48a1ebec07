#include "kube/scheduler/claims/amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/shorten.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr Nanos kOne = 1'000'000'000;
constexpr Nanos kThousandth = kOne / 1000;
constexpr Nanos kLargest = std::numeric_limits<std::int64_t>::max();

Nanos up_to(Nanos value, Nanos unit) {
  return (value + unit - 1) / unit;
}

bool is_thousandths(const Amount& amount) {
  return amount.value % kThousandth == 0 && amount.value / kThousandth <= kLargest;
}

/// In which units a range is calculated: as Kubernetes does, with 64 bits of them.
Nanos unit_of(const AmountRange& range, bool fractions) {
  const bool fits = is_thousandths(range.min) && (!range.max || is_thousandths(*range.max)) && range.step &&
                    is_thousandths(*range.step) && range.step->value > 0;
  return fractions && fits ? kThousandth : kOne;
}

/// "80Gi" rather than "85899345920" where the steps are of that kind.
std::string written(Nanos value, const std::string& like) {
  if (value % kOne != 0) return fmt::format("{}m", static_cast<std::int64_t>(value / kThousandth));
  auto whole = static_cast<std::int64_t>(value / kOne);
  if (!like.ends_with('i') || whole == 0) return fmt::format("{}", whole);
  constexpr std::string_view kSuffixes = "KMGTPE";
  std::size_t power = 0;
  while (whole % 1024 == 0 && power < kSuffixes.size()) {
    whole /= 1024;
    ++power;
  }
  return power == 0 ? fmt::format("{}", whole) : fmt::format("{}{}i", whole, kSuffixes[power - 1]);
}

Result<Amount> rounded_up(const Amount& asked, const AmountRange& range, bool fractions) {
  if (asked.value < range.min.value) return range.min;
  if (!range.step) return asked;
  const auto unit = unit_of(range, fractions);
  const auto no_number = [&] {
    return fail(ErrorKind::kInvalid,
                fmt::format("the amount '{}' cannot be rounded up to the steps of the device", asked.text),
                "ask for less, or for a multiple of the step");
  };
  if (unit == kThousandth && !is_thousandths(asked)) return no_number();
  const auto min = up_to(range.min.value, unit);
  const auto step = up_to(range.step->value, unit);
  const auto rounded = min + up_to(up_to(asked.value, unit) - min, step) * step;
  if (rounded > kLargest) return no_number();
  return Amount{rounded * unit, written(rounded * unit, range.step->text)};
}

Result<Amount> share_of(const DeviceCapacity& capacity, const Amount* asked, bool fractions) {
  if (asked == nullptr) return capacity.unasked.value_or(capacity.value);
  if (capacity.range) return rounded_up(*asked, *capacity.range, fractions);
  const auto enough =
      std::ranges::find_if(capacity.values, [&](const Amount& value) { return asked->value <= value.value; });
  return enough == capacity.values.end() ? *asked : *enough;
}

bool may_be_given(const Amount& share, const DeviceCapacity& capacity, bool fractions) {
  if (capacity.unasked && share.value == capacity.unasked->value) return true;
  if (const auto& range = capacity.range) {
    if (range->max && share.value > range->max->value) return false;
    if (!range->step) return true;
    const auto unit = unit_of(*range, fractions);
    if (unit == kThousandth && !is_thousandths(share)) return false;
    const auto above = up_to(share.value, unit) - up_to(range->min.value, unit);
    return above % up_to(range->step->value, unit) == 0;
  }
  return capacity.values.empty() || std::ranges::any_of(capacity.values, [&](const Amount& value) {
           return value.value == share.value;
         });
}

}  // namespace

std::optional<Amount> read_amount(FieldReader& reader, const json& object, const char* name) {
  const auto& value = reader.field(object, name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string() && !value.is_number()) {
    reader.mistake(fmt::format("the field '{}' is no quantity", shortened(name)));
    return std::nullopt;
  }
  auto text = value.is_string() ? value.get<std::string>() : value.dump();
  const auto read = parse_nanos(text);
  if (!read) {
    reader.mistake(fmt::format("'{}': {}", shortened(name), read.error().message));
    return std::nullopt;
  }
  return Amount{*read, std::move(text)};
}

Amounts read_amounts(FieldReader& reader, const json& object, const char* name) {
  Amounts amounts;
  const auto& given = reader.object(object, name);
  for (const auto& [key, value] : given.items())
    if (auto amount = read_amount(reader, given, key.c_str())) amounts.emplace(key, std::move(*amount));
  return amounts;
}

DeviceCapacity read_capacity(FieldReader& reader, std::string name, const json& given) {
  DeviceCapacity capacity;
  capacity.name = std::move(name);
  if (auto value = read_amount(reader, given, "value"))
    capacity.value = std::move(*value);
  else
    reader.mistake(fmt::format("the capacity '{}' has no value", shortened(capacity.name)));
  const auto& policy = reader.object(given, "requestPolicy");
  capacity.unasked = read_amount(reader, policy, "default");
  if (const auto& values = reader.field(policy, "validValues"); values.is_array()) {
    for (const auto& value : values)
      if (auto amount = read_amount(reader, {{"validValues", value}}, "validValues"))
        capacity.values.push_back(std::move(*amount));
  }
  const auto& range = reader.object(policy, "validRange");
  if (range.is_null()) return capacity;
  auto min = read_amount(reader, range, "min");
  if (!min) reader.mistake(fmt::format("the range of '{}' has no 'min'", shortened(capacity.name)));
  capacity.range = AmountRange{min.value_or(Amount()), read_amount(reader, range, "max"),
                               read_amount(reader, range, "step")};
  if (capacity.range->step && capacity.range->step->value == 0)
    reader.mistake(fmt::format("the range of '{}' has steps of 0", shortened(capacity.name)));
  return capacity;
}

Result<std::optional<Amounts>> consumption(const Amounts& asked, const DeviceCapacities& capacities,
                                           bool fractions) {
  std::size_t found = 0;
  Amounts shares;
  bool given = true;
  for (const auto& capacity : capacities) {
    const auto wanted = asked.find(capacity->name);
    found += wanted == asked.end() ? 0 : 1;
    auto share = share_of(*capacity, wanted == asked.end() ? nullptr : &wanted->second, fractions);
    if (!share)
      return Failure(context(std::move(share).error(), fmt::format("the capacity '{}'", capacity->name)));
    given = given && may_be_given(*share, *capacity, fractions) && share->value <= capacity->value.value;
    shares.emplace(capacity->name, std::move(*share));
  }
  if (!given || found != asked.size()) return std::optional<Amounts>();
  return std::optional(std::move(shares));
}

bool is_left(const Amounts& wanted, const DeviceCapacities& capacities, const Consumed& consumed) {
  return std::ranges::all_of(capacities, [&](const auto& capacity) {
    const auto share = wanted.find(capacity->name);
    const auto others = consumed.find(capacity->name);
    const auto sum =
        (share == wanted.end() ? 0 : share->second.value) + (others == consumed.end() ? 0 : others->second);
    return sum <= capacity->value.value;
  });
}

}  // namespace drover::kube::scheduler
