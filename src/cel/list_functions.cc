#include <algorithm>
#include <numeric>

#include "cel/functions.h"

// Lists, sets and optional values.
namespace drover::cel {
namespace {

const List& list_at(const Call& call, std::size_t i) {
  return *call.arguments[i].list();
}
std::int64_t whole_at(const Call& call, std::size_t i) {
  return *call.arguments[i].as<std::int64_t>();
}
Value too_much() {
  return problem("a list takes too much work", ErrorKind::kExhausted);
}

Value is_sorted(const Call& call) {
  const auto& list = list_at(call, 0);
  for (std::size_t i = 1; i < list.size() && call.work.spend(1); ++i)
    if (const auto order = compare(list[i - 1], list[i]);
        order.as<std::int64_t>() != nullptr && *order.as<std::int64_t>() > 0)
      return false;
  return true;
}

template <typename T>
Value sum(const Call& call) {
  const Function add = find_function("_+_")->front().run;
  Value total = T{0};
  for (const auto& value : list_at(call, 0)) {
    const Value both[]{total, value};
    total = add({call.work, both});
    if (total.error() != nullptr) return total;
  }
  return total;
}

/// The element that none is before, or behind.
template <int kWorse>
Value extreme(const Call& call) {
  const auto& list = list_at(call, 0);
  if (list.empty()) return problem("an empty list has neither a least nor a greatest element");
  const auto* best = &list.front();
  for (const auto& value : list) {
    call.work.spend(1);
    const auto order = compare(*best, value);
    if (order.as<std::int64_t>() != nullptr && *order.as<std::int64_t>() == kWorse) best = &value;
  }
  return *best;
}

Value index_of(const Call& call) {
  const auto& list = list_at(call, 0);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (equal(list[i], call.arguments[1], call.work).is(true)) return static_cast<std::int64_t>(i);
  return std::int64_t{-1};
}
Value last_index_of(const Call& call) {
  const auto& list = list_at(call, 0);
  for (auto i = list.size(); i > 0; --i)
    if (equal(list[i - 1], call.arguments[1], call.work).is(true)) return static_cast<std::int64_t>(i - 1);
  return std::int64_t{-1};
}

Value slice(const Call& call) {
  const auto& list = list_at(call, 0);
  const auto begin = whole_at(call, 1), end = whole_at(call, 2);
  if (begin < 0 || end < begin || end > static_cast<std::int64_t>(list.size()))
    return problem("a slice is outside of a list");
  if (!call.work.spend(static_cast<std::size_t>(end - begin))) return too_much();
  return List(list.begin() + begin, list.begin() + end);
}

bool flatten_into(List& flat, const List& list, std::int64_t depth, Work& work) {
  for (const auto& value : list) {
    if (!work.spend(1)) return false;
    if (value.list() == nullptr || depth == 0)
      flat.push_back(value);
    else if (!flatten_into(flat, *value.list(), depth - 1, work))
      return false;
  }
  return true;
}
Value flatten(const Call& call) {
  if (call.arguments[0].list() == nullptr) return no_such_overload("flatten");
  if (call.arguments.size() > 1 && call.arguments[1].as<std::int64_t>() == nullptr)
    return no_such_overload("flatten");
  const auto depth = call.arguments.size() > 1 ? whole_at(call, 1) : 1;
  List flat;
  if (depth < 0) return problem("a list cannot be flattened less than not at all");
  return flatten_into(flat, list_at(call, 0), depth, call.work) ? Value(std::move(flat)) : too_much();
}

Value sorted_by(const List& list, const List& keys, Work& work) {
  if (list.size() != keys.size()) return problem("a list is sorted by as many keys as it has elements");
  if (list.empty()) return list;
  if (!work.spend(list.size() * 4)) return too_much();
  for (const auto& key : keys) {
    if (key.data().index() != keys[0].data().index())
      return problem("the elements of a list are of several types");
    const auto itself = compare(key, key);
    if (itself.error() == nullptr) continue;
    return key.as<double>() != nullptr
               ? problem("a list with what is no number cannot be sorted here", ErrorKind::kUnsupported)
               : problem("elements of a list have no order");
  }
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const auto result = compare(keys[a], keys[b]);
    const auto* number = result.as<std::int64_t>();
    return number == nullptr || *number == 0 ? a < b : *number < 0;
  });
  List sorted;
  for (const auto i : order) sorted.push_back(list[i]);
  return sorted;
}
Value sort(const Call& call) {
  if (call.arguments[0].list() == nullptr) return no_such_overload("sort");
  return sorted_by(list_at(call, 0), list_at(call, 0), call.work);
}
Value sort_by(const Call& call) {
  if (call.arguments[0].list() == nullptr || call.arguments[1].list() == nullptr)
    return no_such_overload("sortBy");
  return sorted_by(list_at(call, 0), list_at(call, 1), call.work);
}

Value range(const Call& call) {
  List numbers;
  for (std::int64_t i = 0; i < whole_at(call, 0); ++i) {
    if (!call.work.spend(1)) return too_much();
    numbers.emplace_back(i);
  }
  return numbers;
}

Value reversed(const Call& call) {
  if (!call.work.spend(list_at(call, 0).size())) return too_much();
  return List(list_at(call, 0).rbegin(), list_at(call, 0).rend());
}

Value distinct(const Call& call) {
  List seen;
  for (const auto& value : list_at(call, 0)) {
    if (!call.work.spend(1)) return too_much();
    const auto known = [&](const Value& other) { return equal(value, other, call.work).is(true); };
    if (std::ranges::none_of(seen, known)) seen.push_back(value);
  }
  return seen;
}

Value has_all(const List& list, const List& wanted, Work& work) {
  return std::ranges::all_of(wanted, [&](const Value& value) { return contains(list, value, work); });
}
Value set_contains(const Call& call) {
  return has_all(list_at(call, 0), list_at(call, 1), call.work);
}
Value set_equivalent(const Call& call) {
  return has_all(list_at(call, 0), list_at(call, 1), call.work).is(true) &&
         has_all(list_at(call, 1), list_at(call, 0), call.work).is(true);
}
Value set_intersects(const Call& call) {
  return std::ranges::any_of(
      list_at(call, 0), [&](const Value& value) { return contains(list_at(call, 1), value, call.work); });
}

Value optional_of(const Call& call) {
  return some(call.arguments[0]);
}
Value optional_none(const Call&) {
  return Optional{};
}
Value optional_of_non_zero(const Call& call) {
  const auto& value = call.arguments[0];
  const auto is = [&](const Value& zero) {
    return value.data().index() == zero.data().index() && equal(value, zero, call.work).is(true);
  };
  const bool zero = value.as<Null>() != nullptr || is(false) || is(std::int64_t{0}) || is(std::uint64_t{0}) ||
                    is(0.0) || is(std::string()) || is(Bytes{}) ||
                    (value.list() != nullptr && value.list()->empty()) ||
                    (value.map() != nullptr && value.map()->entries.empty());
  return zero ? Value(Optional{}) : some(value);
}
Value optional_value(const Call& call) {
  const auto& value = call.arguments[0].as<Optional>()->value;
  return value == nullptr ? problem("an optional value is not there") : *value;
}
Value optional_has_value(const Call& call) {
  return call.arguments[0].as<Optional>()->value != nullptr;
}
Value first(const Call& call) {
  return list_at(call, 0).empty() ? Value(Optional{}) : some(list_at(call, 0).front());
}
Value last(const Call& call) {
  return list_at(call, 0).empty() ? Value(Optional{}) : some(list_at(call, 0).back());
}
Value unwrapped(const Call& call) {
  List values;
  for (const auto& value : list_at(call, 0)) {
    if (value.as<Optional>() == nullptr) return problem("a value is not optional");
    if (value.as<Optional>()->value != nullptr) values.push_back(*value.as<Optional>()->value);
  }
  return values;
}

constexpr Declaration kLists[]{
    {"list<$>:isSorted()->bool", is_sorted},
    {"list<int>:sum()->int", sum<std::int64_t>},
    {"list<uint>:sum()->uint", sum<std::uint64_t>},
    {"list<double>:sum()->double;list<Duration>:sum()->Duration", sum<double>},
    {"list<$>:max()->$", extreme<-1>},
    {"list<$>:min()->$", extreme<1>},
    {"list<A>:indexOf(A)->int", index_of},
    {"list<A>:lastIndexOf(A)->int", last_index_of},
    {"list<A>:slice(int,int)->list<A>", slice},
    {"list<list<A>>:flatten()->list<A>;list<dyn>:flatten(int)->list<dyn>", flatten, kUnguarded},
    {"list<$>:sort()->list<$>", sort, kUnguarded},
    {"list<A>:@sortByAssociatedKeys(list<$>)->list<A>", sort_by, kUnguarded},
    {"lists.range(int)->list<int>", range},
    {"list<A>:reverse()->list<A>", reversed},
    {"list<A>:distinct()->list<A>", distinct},
    {"sets.contains(list<A>,list<A>)->bool", set_contains},
    {"sets.equivalent(list<A>,list<A>)->bool", set_equivalent},
    {"sets.intersects(list<A>,list<A>)->bool", set_intersects},
    {"optional.of(A)->optional<A>", optional_of},
    {"optional.ofNonZeroValue(A)->optional<A>", optional_of_non_zero},
    {"optional.none()->optional<A>", optional_none},
    {"optional<A>:value()->A", optional_value},
    {"optional<A>:hasValue()->bool", optional_has_value},
    {"optional<A>:or(optional<A>)->optional<A>", nullptr, Overload::Way::kOr},
    {"optional<A>:orValue(A)->A", nullptr, Overload::Way::kOrValue},
    {"list<A>:first()->optional<A>", first},
    {"list<A>:last()->optional<A>", last},
    {"optional.unwrap(list<optional<A>>)->list<A>;list<optional<A>>:unwrapOpt()->list<A>", unwrapped},
};

}  // namespace

std::span<const Declaration> list_functions() {
  return kLists;
}

}  // namespace drover::cel
