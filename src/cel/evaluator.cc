#include "cel/evaluator.h"

#include <algorithm>
#include <array>

#include "cel/functions.h"

namespace drover::cel {
namespace {

using Kind = Expression::Kind;
using Way = Overload::Way;

/// An optional value as Kubernetes hands it on where it is a variable or chosen: it loses what it has in
/// common with Go's own values least.
Value handed_on(const Value& value) {
  const auto* optional = value.as<Optional>();
  if (optional == nullptr || optional->value == nullptr) return value;
  const auto& inner = *optional->value;
  if (const auto* type = inner.as<TypeName>()) return some(std::string(type->name));
  if (inner.as<Optional>() != nullptr && inner.as<Optional>()->value == nullptr) return some(Value());
  if (inner.as<Optional>() != nullptr) return handed_on(inner);
  if (inner.map() != nullptr && inner.map()->empty_by_default) return some(Map{inner.map()->entries});
  if (inner.semver() == nullptr && inner.as<Amount>() == nullptr) return value;
  return Optional{std::make_shared<const Value>(problem("Kubernetes loses this value of an optional one"))};
}

/// A fold that is under way, and what its names stand for.
struct Frame {
  const Expression& fold;
  Frame* outer;
  Value first, second, result;
  bool begun = false;   ///< the accumulator has a value
  bool ending = false;  ///< the variables are gone
};

class Evaluator {
 public:
  Evaluator(const Value& device, Work& work) : device_(device), work_(work) {}

  Value value(const Expression& node) {
    if (!work_.spend(1)) return problem("the selector takes too much work", ErrorKind::kExhausted);
    switch (node.kind) {
      case Kind::kLiteral:
        return node.value;
      case Kind::kName:
        return named(node.name);
      case Kind::kSelect:
        return element(value(*node.arguments[0]), name_of(node), false, work_);
      case Kind::kOptional:
        return element(value(*node.arguments[0]), name_of(node), true, work_);
      case Kind::kPresent:
        return present(node);
      case Kind::kAnd:
        return joined(node, false);
      case Kind::kOr:
        return joined(node, true);
      case Kind::kChoice:
        return choice(node);
      case Kind::kList:
        return list(node);
      case Kind::kMap:
        return map(node);
      case Kind::kFold:
        return fold(node);
      case Kind::kCall:
        return call(node);
    }
    return {};
  }

 private:
  static Value name_of(const Expression& node) { return node.name; }

  Value named(std::string_view name) {
    for (auto* frame = frame_; frame != nullptr; frame = frame->outer) {
      if (name == frame->fold.name) return handed_on(accumulator(*frame));
      if (frame->ending) continue;
      if (name == frame->fold.variable) return handed_on(frame->first);
      if (name == frame->fold.variable2) return handed_on(frame->second);
    }
    return device_;
  }

  const Value& accumulator(Frame& frame) {
    if (!frame.begun) {
      frame.begun = true;
      auto* const inner = std::exchange(frame_, frame.outer);
      frame.result = value(*frame.fold.arguments[Expression::kStart]);
      frame_ = inner;
    }
    return frame.result;
  }

  Value present(const Expression& node, bool chosen = false) {
    const auto operand = value(*node.arguments[0]);
    const auto found = element(operand, name_of(node), true, work_);
    const auto* optional = found.as<Optional>();
    if (optional == nullptr) return found;
    const bool there = optional->value != nullptr;
    if (!chosen || operand.as<Optional>() == nullptr) return there;
    return there ? some(true) : Value(Optional{});
  }

  /// One side of a choice. It is Kubernetes' own that has() of something optional is optional there.
  Value chosen(const Expression& node) {
    if (node.kind == Kind::kPresent) return present(node, true);
    const bool as_is = node.kind == Kind::kName || node.kind == Kind::kSelect ||
                       node.kind == Kind::kOptional || node.kind == Kind::kChoice || node.name == "_[_]" ||
                       node.name == "_[?_]";
    return as_is ? value(node) : handed_on(value(node));
  }

  /// One that decides is enough, whatever is wrong with the others.
  Value joined(const Expression& node, bool deciding) {
    Value result = !deciding;
    for (const auto& argument : node.arguments) {
      auto one = value(*argument);
      if (one.is(deciding)) return one;
      if (one.as<bool>() != nullptr) continue;
      if (one.error() == nullptr) one = no_such_overload(node.name);
      const bool known =
          one.error()->kind != ErrorKind::kUnsupported;  // what is not known here might have decided
      if (result.error() == nullptr || !known) result = std::move(one);
    }
    return result;
  }

  Value choice(const Expression& node) {
    auto condition = value(*node.arguments[0]);
    if (condition.is(true)) return chosen(*node.arguments[1]);
    if (condition.is(false)) return chosen(*node.arguments[2]);
    return condition.error() != nullptr ? condition : no_such_overload("?:");
  }

  /// Whether there is an element; its value, or an error, when there is.
  static bool taken(bool optional, Value& value) {
    if (!optional || value.error() != nullptr) return true;
    const auto* inner = value.as<Optional>();
    const bool there = inner == nullptr || inner->value != nullptr;
    value = inner == nullptr ? problem("an optional value is expected")
            : there          ? Value(*inner->value)
                             : Value();
    return there;
  }

  Value list(const Expression& node) {
    List elements;
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      auto one = value(*node.arguments[i]);
      if (!taken(node.optional[i], one)) continue;
      if (one.error() != nullptr) return one;
      elements.push_back(std::move(one));
    }
    return elements;
  }

  Value map(const Expression& node) {
    Map result;
    for (std::size_t i = 0; i + 1 < node.arguments.size(); i += 2) {
      auto key = value(*node.arguments[i]);
      if (key.error() != nullptr) return key;
      auto one = value(*node.arguments[i + 1]);
      if (!taken(node.optional[i / 2], one)) {
        std::erase_if(result.entries,
                      [&](const auto& entry) { return equal(entry.first, key, work_).is(true); });
        continue;
      }
      if (one.error() != nullptr) return one;
      if (!insert(result, key, one, work_)) return problem("a value cannot be a key");
    }
    return result;
  }

  Value fold(const Expression& node) {
    const auto range = value(*node.arguments[Expression::kRange]);
    if (range.error() != nullptr) return range;
    if (range.list() == nullptr && range.map() == nullptr)
      return problem("only lists and maps have elements");
    Frame frame{node, frame_, {}, {}, {}};
    frame_ = &frame;
    const auto size = range.list() != nullptr ? range.list()->size() : range.map()->entries.size();
    for (std::size_t i = 0; i < size && !work_.exhausted(); ++i) {
      enter(frame, range, i);
      if (value(*node.arguments[Expression::kCondition]).is(false)) break;
      auto next = value(*node.arguments[Expression::kStep]);
      frame.result = std::move(next);
      frame.begun = true;
    }
    frame.ending = true;
    auto result = value(*node.arguments[Expression::kResult]);
    frame_ = frame.outer;
    return result;
  }

  static void enter(Frame& frame, const Value& range, std::size_t i) {
    const bool two = !frame.fold.variable2.empty();
    if (range.map() != nullptr) {
      std::tie(frame.first, frame.second) = range.map()->entries[i];
    } else {
      frame.first = two ? Value(static_cast<std::int64_t>(i)) : (*range.list())[i];
      frame.second = (*range.list())[i];
    }
  }

  Value call(const Expression& node) {
    const auto& first = *node.overloads.front();
    if (first.way == Way::kOr || first.way == Way::kOrValue)
      return alternative(node, first.way == Way::kOrValue);
    std::vector<Value> arguments;
    arguments.reserve(node.arguments.size());
    const bool all = node.arguments.size() <= 2;  // of more, Kubernetes calculates none behind an error
    for (const auto& argument : node.arguments) {
      arguments.push_back(value(*argument));
      if (!all && arguments.back().error() != nullptr) return arguments.back();
    }
    if (is_counted(node, arguments)) work_.stop(node.name + "() takes lists alone");
    const auto wrong =
        std::ranges::find_if(arguments, [](const Value& one) { return one.error() != nullptr; });
    if (wrong != arguments.end()) return first.way == Way::kNotStrictlyFalse ? Value(true) : *wrong;
    if (first.way == Way::kNotStrictlyFalse) return arguments[0];
    const Call call{work_, arguments, node.pattern.get()};
    if (node.overloads.size() == 1)
      return fits_all(first, arguments) ? first.run(call) : no_such_overload(node.name);
    for (const auto& overload : *find_function(node.name))
      if (overload.parameters.size() == arguments.size() && fits_all(overload, arguments))
        return overload.run(call);
    return no_such_overload(node.name);
  }

  /// Kubernetes counts what these cost before it looks at what they were given, and gives up where it cannot.
  static bool is_counted(const Expression& node, const std::vector<Value>& arguments) {
    if (node.overloads.size() > 1) return false;
    const bool by_keys = node.name == "@sortByAssociatedKeys";
    if (by_keys || node.name == "sort" || node.name == "distinct")
      return arguments.size() == (by_keys ? 2 : 1) && arguments.back().list() == nullptr;
    return node.name == "flatten" && arguments.size() == 2 && arguments[1].as<std::int64_t>() == nullptr;
  }

  static bool fits_all(const Overload& overload, const std::vector<Value>& arguments) {
    return overload.way == Way::kUnguarded ||
           std::ranges::equal(overload.parameters, arguments,
                              [](const auto& type, const auto& value) { return fits(*type, value); });
  }

  /// `a.or(b)`, `a.orValue(b)`: what is no optional value stands for itself.
  Value alternative(const Expression& node, bool unwrap) {
    auto one = value(*node.arguments[0]);
    const auto* optional = one.as<Optional>();
    if (optional == nullptr) return one;
    if (optional->value == nullptr) return value(*node.arguments[1]);
    return unwrap ? Value(*optional->value) : one;
  }

  const Value& device_;
  Work& work_;
  Frame* frame_ = nullptr;
};

}  // namespace

Value evaluate(const Expression& root, const Value& device, Work& work) {
  return Evaluator(device, work).value(root);
}

}  // namespace drover::cel
