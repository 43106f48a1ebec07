#include "cel/selector.h"

#include <fmt/format.h>

#include "cel/checker.h"
#include "cel/evaluator.h"
#include "cel/parser.h"

namespace drover::cel {
namespace {

constexpr std::size_t kMostSteps = 1'000'000;

Result<Value> value_of(std::int64_t value) {
  return Value(value);
}
Result<Value> value_of(bool value) {
  return Value(value);
}
Result<Value> value_of(const std::string& value) {
  return Value(value);
}
Result<Value> value_of(const Version& value) {
  DROVER_TRY(auto version, Semver::parse(value.text));
  return Value(std::move(version));
}
template <typename T>
Result<Value> value_of(const std::vector<T>& values) {
  List list;
  for (const T& one : values) {
    DROVER_TRY(auto value, value_of(one));
    list.push_back(std::move(value));
  }
  return Value(std::move(list));
}
Result<Value> value_of(const Attribute& attribute) {
  return std::visit([](const auto& value) { return value_of(value); }, attribute);
}
Result<Value> value_of(const Quantity& quantity) {
  return Value(Amount{quantity});
}

/// By domain and name.
template <typename T>
Result<Value> by_domain(const std::map<std::string, T>& published, const std::string& driver) {
  std::map<std::string, Map> domains;
  for (const auto& [full, written] : published) {
    const auto slash = full.find('/');
    const auto domain = slash == full.npos ? driver : full.substr(0, slash);
    auto value = value_of(written);
    if (!value) return Failure(context(std::move(value).error(), fmt::format("the attribute '{}'", full)));
    domains[domain].entries.emplace_back(full.substr(slash == full.npos ? 0 : slash + 1), std::move(*value));
  }
  Map result;
  result.empty_by_default = true;
  for (auto& [domain, names] : domains) result.entries.emplace_back(domain, std::move(names));
  return Value(std::move(result));
}

Result<Value> value_of(const Device& device) {
  Map map;
  DROVER_TRY(auto attributes, by_domain(device.attributes, device.driver));
  DROVER_TRY(auto capacity, by_domain(device.capacity, device.driver));
  const auto field = [&](const char* name, Value value) {
    map.entries.emplace_back(std::string(name), std::move(value));
  };
  field("driver", device.driver);
  field("allowMultipleAllocations", device.allow_multiple_allocations);
  field("attributes", std::move(attributes));
  field("capacity", std::move(capacity));
  return Value(std::move(map));
}

}  // namespace

Result<Selector> Selector::compile(std::string_view text) {
  DROVER_TRY(auto root, parse(text));
  DROVER_CHECK_OK(check(*root));
  return Selector(std::move(root));
}

Result<bool> Selector::matches(const Device& device) const {
  DROVER_TRY(const auto value, value_of(device));
  Work work(kMostSteps);
  const auto result = evaluate(*root_, value, work);
  if (work.exhausted()) return fail(ErrorKind::kExhausted, work.why());
  if (const auto* error = result.error()) return Failure(*error);
  if (const auto* answer = result.as<bool>()) return *answer;
  return fail(ErrorKind::kInvalid,
              fmt::format("the selector is neither true nor false: it is of type {}", result.type_name()));
}

}  // namespace drover::cel
