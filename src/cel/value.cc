#include "cel/value.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace drover::cel {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTwoTo64 = 2 * kTwoTo63;

int order(auto a, auto b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

int order_of_mixed(double a, std::int64_t b) {
  return a < -kTwoTo63 ? -1 : a > kTwoTo63 ? 1 : order(a, static_cast<double>(b));
}
int order_of_mixed(double a, std::uint64_t b) {
  return a < 0 ? -1 : a > kTwoTo64 ? 1 : order(a, static_cast<double>(b));
}
int order_of_mixed(std::int64_t a, std::uint64_t b) {
  return a < 0 ? -1 : order(static_cast<std::uint64_t>(a), b);
}

template <typename T>
constexpr bool is_number =
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t> || std::is_same_v<T, double>;

/// -1, 0 or 1; none when one of them is no number, or NaN.
std::optional<int> order_of_numbers(const Value& a, const Value& b) {
  return std::visit(
      [](const auto& x, const auto& y) -> std::optional<int> {
        using X = std::decay_t<decltype(x)>;
        using Y = std::decay_t<decltype(y)>;
        if constexpr (!is_number<X> || !is_number<Y>) {
          return std::nullopt;
        } else {
          if constexpr (std::is_same_v<X, double>)
            if (std::isnan(x)) return std::nullopt;
          if constexpr (std::is_same_v<Y, double>)
            if (std::isnan(y)) return std::nullopt;
          if constexpr (std::is_same_v<X, Y>)
            return order(x, y);
          else if constexpr (requires { order_of_mixed(x, y); } &&
                             (std::is_same_v<X, double> || std::is_same_v<Y, std::uint64_t>))
            return order_of_mixed(x, y);
          else
            return -order_of_mixed(y, x);
        }
      },
      a.data(), b.data());
}

bool not_unlike(const Value& found) {
  return !found.is(false);  // elements that cannot be compared do not tell lists apart
}

Value equal_lists(const List& a, const List& b, Work& work) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size() && !work.exhausted(); ++i)
    if (!not_unlike(equal(a[i], b[i], work))) return false;
  return true;
}

Value equal_maps(const Map& a, const Map& b, Work& work) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const auto* other = b.find(key, work);
    if (work.exhausted() || other == nullptr || !not_unlike(equal(value, *other, work))) return false;
  }
  return true;
}

Value equal_optionals(const Optional& a, const Optional& b, Work& work) {
  if (a.value == nullptr || b.value == nullptr) return a.value == b.value;
  return equal(*a.value, *b.value, work);
}

/// The same entry of a Go map: numbers of two types are two keys.
bool is_key(const Value& a, const Value& b, Work& work) {
  return a.data().index() == b.data().index() && equal(a, b, work).is(true);
}

/// The same number as another type.
std::vector<Value> other_keys(const Value& key) {
  std::vector<Value> keys;
  if (const auto* number = key.as<std::int64_t>(); number != nullptr && *number >= 0)
    keys.emplace_back(static_cast<std::uint64_t>(*number));
  if (const auto* number = key.as<std::uint64_t>(); number != nullptr && *number < (1ULL << 63U))
    keys.emplace_back(static_cast<std::int64_t>(*number));
  if (const auto* number = key.as<double>(); number != nullptr && std::trunc(*number) == *number) {
    if (-kTwoTo63 <= *number && *number < kTwoTo63) keys.emplace_back(static_cast<std::int64_t>(*number));
    if (0 <= *number && *number < kTwoTo64) keys.emplace_back(static_cast<std::uint64_t>(*number));
  }
  return keys;
}

const Value& empty_map() {
  static const Value empty = Map{};
  return empty;
}

Value element_of_list(const List& list, const Value& key, bool present) {
  auto index = key.as<std::int64_t>();
  std::vector<Value> others;
  if (index == nullptr) {
    others = other_keys(key);
    index = others.empty() ? nullptr : others.front().as<std::int64_t>();
  }
  if (index == nullptr) return problem("an index of a list must be a whole number");
  if (*index >= 0 && static_cast<std::uint64_t>(*index) < list.size()) {
    const auto& found = list[static_cast<std::size_t>(*index)];
    return present ? some(found) : found;
  }
  if (present) return Optional{};
  return problem(fmt::format("the index {} is outside of a list of {}", *index, list.size()));
}

}  // namespace

bool Work::spend(std::size_t steps) {
  exhausted_ = exhausted_ || steps > left_;
  if (!exhausted_) left_ -= steps;
  return !exhausted_;
}

void Work::stop(std::string why) {
  exhausted_ = true;
  why_ = std::move(why);
}

Value::Value(std::string value) : data_(std::make_shared<const std::string>(std::move(value))) {}
Value::Value(Semver value) : data_(std::make_shared<const Semver>(std::move(value))) {}
Value::Value(List value) : data_(std::make_shared<const List>(std::move(value))) {}
Value::Value(Map value) : data_(std::make_shared<const Map>(std::move(value))) {}
Value::Value(Error error) : data_(std::make_shared<const Error>(std::move(error))) {}

namespace {
template <typename T>
const T* pointed_to(const Value& value) {
  const auto* pointer = value.as<std::shared_ptr<const T>>();
  return pointer == nullptr ? nullptr : pointer->get();
}
}  // namespace

const std::string* Value::text() const {
  return pointed_to<std::string>(*this);
}
const List* Value::list() const {
  return pointed_to<List>(*this);
}
const Map* Value::map() const {
  return pointed_to<Map>(*this);
}
const Semver* Value::semver() const {
  return pointed_to<Semver>(*this);
}
const Error* Value::error() const {
  return pointed_to<Error>(*this);
}

std::string_view Value::type_name() const {
  constexpr std::array<std::string_view, std::variant_size_v<Data>> kNames{"null_type",
                                                                           "bool",
                                                                           "int",
                                                                           "uint",
                                                                           "double",
                                                                           "string",
                                                                           "bytes",
                                                                           "type",
                                                                           "optional_type",
                                                                           "kubernetes.Quantity",
                                                                           "kubernetes.Semver",
                                                                           "list",
                                                                           "map",
                                                                           "error"};
  return kNames.at(data_.index());
}

Value problem(std::string message, ErrorKind kind) {
  return Error{kind, std::move(message), {}, {}};
}

Value no_such_overload(std::string_view function) {
  return problem(fmt::format("'{}' does not take values of these types", function));
}

Value some(Value value) {
  if (value.error() != nullptr) return value;
  return Optional{std::make_shared<const Value>(std::move(value))};
}

const Value* Map::find(const Value& key, Work& work) const {
  if (!work.spend(1 + entries.size() / 10)) return nullptr;
  const auto has = [&](const Value& wanted) -> const Value* {
    for (const auto& [name, value] : entries)
      if (is_key(name, wanted, work)) return &value;
    return nullptr;
  };
  if (const auto* found = has(key)) return found;
  for (const auto& other : other_keys(key))
    if (const auto* found = has(other)) return found;
  return empty_by_default ? &empty_map() : nullptr;
}

bool insert(Map& map, const Value& key, const Value& value, Work& work) {
  if (!is_hashable(key)) return false;
  work.spend(1 + map.entries.size() / 10);
  for (auto& [name, old] : map.entries)
    if (is_key(name, key, work)) {
      old = value;
      return true;
    }
  map.entries.emplace_back(key, value);
  return true;
}

bool is_hashable(const Value& value) {
  return value.as<Bytes>() == nullptr && value.semver() == nullptr;
}

Value equal(const Value& a, const Value& b, Work& work) {
  if (!work.spend(1)) return false;
  if (a.as<Null>() != nullptr || b.as<Null>() != nullptr) return a.data().index() == b.data().index();
  const bool alike = a.data().index() == b.data().index();
  if (const auto* amount = a.as<Amount>()) {
    if (!alike || b.as<Amount>()->calculated) return no_such_overload("==");
    return amount->quantity == b.as<Amount>()->quantity;
  }
  if (a.semver() != nullptr) return alike ? Value(*a.semver() == *b.semver()) : no_such_overload("==");
  if (const auto order = order_of_numbers(a, b)) return *order == 0;
  if (!alike) return false;
  if (const auto* value = a.as<bool>()) return *value == *b.as<bool>();
  if (const auto* text = a.text()) return work.spend_text(text->size()) && *text == *b.text();
  if (const auto* value = a.as<Bytes>())
    return work.spend_text(value->bytes.size()) && value->bytes == b.as<Bytes>()->bytes;
  if (const auto* value = a.as<TypeName>()) return value->name == b.as<TypeName>()->name;
  if (const auto* value = a.as<Optional>()) return equal_optionals(*value, *b.as<Optional>(), work);
  if (const auto* list = a.list()) return equal_lists(*list, *b.list(), work);
  if (const auto* map = a.map()) return equal_maps(*map, *b.map(), work);
  return false;  // NaN
}

Value compare(const Value& a, const Value& b) {
  const auto result = [](int order) { return Value(static_cast<std::int64_t>(order)); };
  if (const auto order = order_of_numbers(a, b)) return result(*order);
  if (a.data().index() == b.data().index()) {
    if (const auto* text = a.text()) return result(order(text->compare(*b.text()), 0));
    if (const auto* value = a.as<bool>()) return result(order(*value, *b.as<bool>()));
    if (const auto* value = a.as<Bytes>())
      return result(order(value->bytes.compare(b.as<Bytes>()->bytes), 0));
  }
  return no_such_overload("<");
}

bool contains(const List& list, const Value& value, Work& work) {
  for (const auto& element : list)
    if (equal(value, element, work).is(true)) return true;
  return false;
}

Value element(const Value& operand, const Value& key, bool present, Work& work) {
  if (operand.error() != nullptr) return operand;
  if (key.error() != nullptr) return key;
  if (const auto* optional = operand.as<Optional>())
    return optional->value == nullptr ? operand : element(*optional->value, key, true, work);
  const bool usable = key.text() != nullptr || key.as<bool>() != nullptr || key.as<double>() != nullptr ||
                      key.as<std::int64_t>() != nullptr || key.as<std::uint64_t>() != nullptr;
  if (!usable) return problem(fmt::format("a value of type {} is no key", key.type_name()));
  if (const auto* list = operand.list()) return element_of_list(*list, key, present);
  const auto* map = operand.map();
  const auto* found = map == nullptr ? nullptr : map->find(key, work);
  if (found != nullptr) return present ? some(*found) : *found;
  if (present) return Optional{};
  return problem(key.text() == nullptr ? "there is no such key"
                                       : fmt::format("there is no such key: '{}'", *key.text()));
}

}  // namespace drover::cel
