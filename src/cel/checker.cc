#include "cel/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cel/constants.h"
#include "cel/functions.h"
#include "cel/lexer.h"
#include "cel/macros.h"
#include "cel/types.h"

namespace drover::cel {
namespace {

using Kind = Expression::Kind;

constexpr std::size_t kLargestType = 1000;

/// A name and what it is, in the order in which they hide each other.
using Scope = std::vector<std::pair<std::string, TypePointer>>;

TypePointer map_of_strings(TypePointer values) {
  return compound(Type::Kind::kMap, {simple(Type::Kind::kString), std::move(values)});
}

/// What `device` has.
TypePointer field_of_device(std::string_view name) {
  if (name == "driver") return simple(Type::Kind::kString);
  if (name == "allowMultipleAllocations") return simple(Type::Kind::kBool);
  if (name == "attributes") return map_of_strings(map_of_strings(simple(Type::Kind::kDynamic)));
  if (name == "capacity") return map_of_strings(map_of_strings(object("kubernetes.Quantity")));
  return nullptr;
}

/// The name of a type, as a value.
std::optional<TypeName> type_named(std::string_view name) {
  static const std::set<std::string_view> kNames{"bool",   "bytes", "double",    "int",
                                                 "list",   "map",   "null_type", "optional_type",
                                                 "string", "type",  "uint"};
  const auto found = kNames.find(name);
  return found == kNames.end() ? std::nullopt : std::optional(TypeName{*found});
}

/// "a.b.c" of names behind points; empty for anything else.
std::string path_of(const Expression& node) {
  if (node.kind == Kind::kName) return node.name;
  if (node.kind != Kind::kSelect) return "";
  const auto front = path_of(*node.arguments[0]);
  return front.empty() ? "" : front + "." + node.name;
}

class Checker {
 public:
  Status node(Expression& node) {
    DROVER_TRY(node.type, typed(node));
    if (node.type->size > kLargestType || known_.work() > kMostWork) return too_complex(node);
    return {};
  }

  /// Puts in what became known of types, and looks at what must be of one type.
  Status close(Expression& node) {
    node.type = known_.applied(node.type, true);
    for (auto& argument : node.arguments) DROVER_CHECK_OK(close(*argument));
    if (known_.work() > kMostWork) return too_complex(node);
    // Kubernetes looks for a type of the variable's name.
    if (node.kind == Kind::kName && node.type->kind == Type::Kind::kType) return mismatch(node);
    const std::size_t step = node.kind == Kind::kMap ? 2 : node.kind == Kind::kList ? 1 : 0;
    for (std::size_t i = 0; step > 0 && i < node.arguments.size(); ++i) {
      const auto type = element_type(node, i);
      if (type == nullptr || !(*type == *element_type(node, i % step))) return mismatch(*node.arguments[i]);
    }
    return {};
  }

 private:
  static constexpr std::size_t kMostWork = 1'000'000;

  static Failure too_complex(const Expression& node) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("the types of the selector are too complex, in character {}", node.place + 1));
  }
  static Failure mismatch(const Expression& node) {
    return no_cel("the types do not go together", node.place);
  }
  static TypePointer boolean() { return simple(Type::Kind::kBool); }

  /// Of an element that may be missing: what it is when it is there. Null where that is not known: Kubernetes
  /// falls over it.
  static TypePointer element_type(const Expression& list, std::size_t i) {
    const auto& type = list.arguments[i]->type;
    const bool value = list.kind == Kind::kList || i % 2 == 1;
    const bool optional = value && list.optional[list.kind == Kind::kList ? i : i / 2];
    if (!optional) return type;
    return type->kind == Type::Kind::kOptional ? type->of[0] : nullptr;
  }

  Result<TypePointer> typed(Expression& node) {
    switch (node.kind) {
      case Kind::kLiteral:
        return type_of(node.value);
      case Kind::kName:
        return name(node);
      case Kind::kSelect:
      case Kind::kPresent:
      case Kind::kOptional:
        return field(node);
      case Kind::kFold:
        return fold(node);
      case Kind::kCall:
        if (node.member) resolve_path(node);
        [[fallthrough]];
      case Kind::kAnd:
      case Kind::kOr:
      case Kind::kChoice:
      case Kind::kList:
      case Kind::kMap:
        for (auto& argument : node.arguments) DROVER_CHECK_OK(this->node(*argument));
        return node.kind == Kind::kList || node.kind == Kind::kMap ? aggregate(node)
               : node.kind == Kind::kAnd || node.kind == Kind::kOr ? conjunction(node)
                                                                   : call(node);
    }
    return mismatch(node);
  }

  Result<TypePointer> name(Expression& node) {
    const auto found =
        std::find_if(scope_.rbegin(), scope_.rend(), [&](const auto& one) { return one.first == node.name; });
    if (found != scope_.rend()) return found->second;
    if (node.name == "device") return object("kubernetes.DRADevice");
    if (const auto type = type_named(node.name)) {
      node.kind = Kind::kLiteral;
      node.value = *type;
      return type_of(node.value);
    }
    if (node.name == "google" || node.name == "kubernetes" || node.name == "net")
      return fail(ErrorKind::kUnsupported, fmt::format("the types of '{}' are not known here", node.name));
    return no_cel(fmt::format("nobody declares '{}'", node.name), node.place);
  }

  Result<TypePointer> field(Expression& node) {
    DROVER_CHECK_OK(this->node(*node.arguments[0]));
    auto operand = known_.applied(node.arguments[0]->type);
    const bool optional = operand->kind == Type::Kind::kOptional;
    if (optional) operand = operand->of[0];
    TypePointer result = simple(Type::Kind::kDynamic);
    if (operand->kind == Type::Kind::kMap)
      result = operand->of[1];
    else if (operand->kind == Type::Kind::kObject)
      result = operand->name == "kubernetes.DRADevice" ? field_of_device(node.name) : nullptr;
    else if (operand->kind == Type::Kind::kVariable)
      known_.assignable({result}, {operand});
    else if (operand->kind != Type::Kind::kDynamic)
      result = nullptr;
    if (result == nullptr) return no_cel(fmt::format("there is no field '{}'", node.name), node.place);
    if (node.kind == Kind::kPresent) return boolean();
    return known_.applied(optional || node.kind == Kind::kOptional ? compound(Type::Kind::kOptional, {result})
                                                                   : result);
  }

  /// `optional.of(x)` is a function of that name, and no call of something of a variable's.
  static void resolve_path(Expression& node) {
    const auto path = path_of(*node.arguments[0]);
    const auto full = path + "." + node.name;
    if (path.empty() || find_function(full) == nullptr) return;
    node.name = full;
    node.member = false;
    node.arguments.erase(node.arguments.begin());
  }

  Result<TypePointer> conjunction(const Expression& node) {
    for (const auto& argument : node.arguments)
      if (!known_.assignable({argument->type}, {boolean()})) return mismatch(*argument);
    return boolean();
  }

  Result<TypePointer> call(Expression& node) {
    const auto* overloads = find_function(node.name);
    if (overloads == nullptr)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("the function '{}' of a selector is not known here", node.name));
    std::vector<TypePointer> arguments;
    for (const auto& argument : node.arguments) arguments.push_back(argument->type);
    TypePointer result;
    node.overloads.clear();
    for (const auto& overload : *overloads) {
      if (overload.member != node.member || overload.parameters.size() != arguments.size()) continue;
      std::map<std::size_t, TypePointer> variables;
      std::vector<TypePointer> parameters;
      for (const auto& parameter : overload.parameters)
        parameters.push_back(instantiated(parameter, variables));
      const auto type = instantiated(overload.result, variables);
      if (!known_.assignable(arguments, parameters)) continue;
      node.overloads.push_back(&overload);
      const auto found = known_.applied(type);
      if (result == nullptr)
        result = found;
      else if (result->kind != Type::Kind::kDynamic && !(*found == *result))
        result = simple(Type::Kind::kDynamic);
    }
    if (result == nullptr)
      return no_cel(fmt::format("'{}' does not take values of these types", node.name), node.place);
    return result;
  }

  TypePointer instantiated(const TypePointer& type, std::map<std::size_t, TypePointer>& variables) {
    if (type->kind == Type::Kind::kVariable) {
      auto& variable = variables[type->variable];
      if (variable == nullptr) variable = known_.fresh();
      return variable;
    }
    if (type->of.empty()) return type;
    auto of = type->of;
    for (auto& one : of) one = instantiated(one, variables);
    return compound(type->kind, std::move(of));
  }

  Result<TypePointer> aggregate(const Expression& node) {
    const std::size_t step = node.kind == Kind::kMap ? 2 : 1;
    std::vector<TypePointer> of(step);
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      const auto type = element_type(node, i);
      if (type == nullptr) return mismatch(*node.arguments[i]);
      auto& joined = of[i % step];
      if (joined == nullptr)
        joined = type;
      else if (!known_.assignable({joined}, {type}))
        return mismatch(*node.arguments[i]);
      else if (!is_general(*joined, *type))
        joined = type;
    }
    for (auto& one : of)
      if (one == nullptr) one = known_.fresh();
    return compound(node.kind == Kind::kMap ? Type::Kind::kMap : Type::Kind::kList, std::move(of));
  }

  Result<TypePointer> fold(Expression& node) {
    auto& parts = node.arguments;
    DROVER_CHECK_OK(this->node(*parts[Expression::kRange]));
    DROVER_CHECK_OK(this->node(*parts[Expression::kStart]));
    const auto range = known_.applied(parts[Expression::kRange]->type);
    TypePointer first = simple(Type::Kind::kDynamic), second = first;
    if (range->kind == Type::Kind::kList) {
      first = node.variable2.empty() ? range->of[0] : simple(Type::Kind::kInt);
      second = range->of[0];
    } else if (range->kind == Type::Kind::kMap) {
      first = range->of[0];
      second = range->of[1];
    } else if (range->kind == Type::Kind::kVariable) {
      known_.assignable({first}, {range});
    } else if (range->kind != Type::Kind::kDynamic) {
      return mismatch(*parts[Expression::kRange]);
    }
    const auto outside = scope_.size();
    scope_.emplace_back(node.name, parts[Expression::kStart]->type);
    const auto inside = scope_.size();
    scope_.emplace_back(node.variable, first);
    if (!node.variable2.empty()) scope_.emplace_back(node.variable2, second);
    DROVER_CHECK_OK(this->node(*parts[Expression::kCondition]));
    if (!known_.assignable({boolean()}, {parts[Expression::kCondition]->type}))
      return mismatch(*parts[Expression::kCondition]);
    DROVER_CHECK_OK(this->node(*parts[Expression::kStep]));
    if (!known_.assignable({parts[Expression::kStart]->type}, {parts[Expression::kStep]->type}))
      return mismatch(*parts[Expression::kStep]);
    scope_.resize(inside);
    DROVER_CHECK_OK(this->node(*parts[Expression::kResult]));
    scope_.resize(outside);
    return known_.applied(parts[Expression::kResult]->type);
  }

  Scope scope_;
  Substitution known_;
};

}  // namespace

Status check(Expression& root) {
  Checker checker;
  DROVER_CHECK_OK(checker.node(root));
  DROVER_CHECK_OK(checker.close(root));
  if (root.type->kind != Type::Kind::kBool && root.type->kind != Type::Kind::kDynamic)
    return no_cel("it is neither true nor false", root.place);
  return calculate_constants(root);
}

}  // namespace drover::cel
