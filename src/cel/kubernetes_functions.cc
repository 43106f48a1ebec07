#include <algorithm>

#include "cel/functions.h"

// Quantities, versions, and attributes that are lists.
namespace drover::cel {
namespace {

const Quantity& quantity_at(const Call& call, std::size_t i) {
  return call.arguments[i].as<Amount>()->quantity;
}
const Semver& semver_at(const Call& call, std::size_t i) {
  return *call.arguments[i].semver();
}
template <typename T>
Value number(T order) {
  return static_cast<std::int64_t>(order < 0 ? -1 : order > 0 ? 1 : 0);
}

Value quantity(const Call& call) {
  auto read = Quantity::parse(*call.arguments[0].text());
  return read ? Value(Amount{*read}) : Value(read.error());
}
Value is_quantity(const Call& call) {
  const auto read = Quantity::parse(*call.arguments[0].text());
  return read || read.error().kind == ErrorKind::kUnsupported;
}
Value sign(const Call& call) {
  return number(quantity_at(call, 0).sign());
}
Value compare_quantities(const Call& call) {
  return number(quantity_at(call, 0) <=> quantity_at(call, 1));
}
Value is_greater_quantity(const Call& call) {
  return quantity_at(call, 0) > quantity_at(call, 1);
}
Value is_less_quantity(const Call& call) {
  return quantity_at(call, 0) < quantity_at(call, 1);
}
Value as_float(const Call& call) {
  return quantity_at(call, 0).approximate();
}
Value as_integer(const Call& call) {
  const auto whole = quantity_at(call, 0).whole();
  return whole ? Value(*whole) : problem("a quantity is no whole number");
}
Value is_integer(const Call& call) {
  return quantity_at(call, 0).whole().has_value();
}
template <bool kSubtract>
Value quantity_sum(const Call& call) {
  const auto* whole = call.arguments[1].as<std::int64_t>();
  const auto other = whole != nullptr ? Quantity(*whole) : quantity_at(call, 1);
  auto result = kSubtract ? quantity_at(call, 0).minus(other) : quantity_at(call, 0).plus(other);
  return result ? Value(Amount{*result, true}) : Value(result.error());
}

Result<Semver> parsed(const Call& call) {
  const bool normalize = call.arguments.size() > 1 && call.arguments[1].is(true);
  const auto& text = *call.arguments[0].text();
  return normalize ? Semver::parse_normalized(text) : Semver::parse(text);
}
Value semver(const Call& call) {
  auto version = parsed(call);
  return version ? Value(std::move(*version)) : Value(version.error());
}
Value is_semver(const Call& call) {
  return parsed(call).has_value();
}
Value compare_versions(const Call& call) {
  return number(semver_at(call, 0) <=> semver_at(call, 1));
}
Value is_greater_version(const Call& call) {
  return semver_at(call, 0) > semver_at(call, 1);
}
Value is_less_version(const Call& call) {
  return semver_at(call, 0) < semver_at(call, 1);
}
template <std::uint64_t Semver::* kPart>
Value part(const Call& call) {
  return static_cast<std::int64_t>(semver_at(call, 0).*kPart);
}

Value includes(const Call& call) {
  constexpr std::size_t kMostValues = 48;
  const auto& wanted = call.arguments[1];
  const auto* list = call.arguments[0].list();
  if (list == nullptr) return equal(call.arguments[0], wanted, call.work).is(true);
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (i >= kMostValues) return problem("includes() takes no list as long as this one");
    if (equal((*list)[i], wanted, call.work).is(true)) return true;
  }
  return false;
}

constexpr Declaration kKubernetes[]{
    {"quantity(string)->Quantity", quantity},
    {"isQuantity(string)->bool", is_quantity},
    {"sign(Quantity)->int", sign},
    {"Quantity:isGreaterThan(Quantity)->bool", is_greater_quantity},
    {"Quantity:isLessThan(Quantity)->bool", is_less_quantity},
    {"Quantity:compareTo(Quantity)->int", compare_quantities},
    {"Quantity:asApproximateFloat()->double", as_float},
    {"Quantity:asInteger()->int", as_integer},
    {"Quantity:isInteger()->bool", is_integer},
    {"Quantity:add(Quantity)->Quantity;Quantity:add(int)->Quantity", quantity_sum<false>},
    {"Quantity:sub(Quantity)->Quantity;Quantity:sub(int)->Quantity", quantity_sum<true>},
    {"semver(string)->Semver;semver(string,bool)->Semver", semver},
    {"isSemver(string)->bool;isSemver(string,bool)->bool", is_semver},
    {"Semver:isGreaterThan(Semver)->bool", is_greater_version},
    {"Semver:isLessThan(Semver)->bool", is_less_version},
    {"Semver:compareTo(Semver)->int", compare_versions},
    {"Semver:major()->int", part<&Semver::major>},
    {"Semver:minor()->int", part<&Semver::minor>},
    {"Semver:patch()->int", part<&Semver::patch>},
    {"dyn:includes(dyn)->bool", includes, Overload::Way::kUnguarded},
};

}  // namespace

std::span<const Declaration> kubernetes_functions() {
  return kKubernetes;
}

}  // namespace drover::cel
