#include "cel/macros.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "cel/lexer.h"

namespace drover::cel {
namespace {

using Kind = Expression::Kind;

constexpr const char* kResultName = "@result";  // no name of anybody's: they have no '@'

/// Makes nodes of one call that is expanded.
class Expansion {
 public:
  explicit Expansion(const Expression& call) : call_(call) {}

  Result<Node> has() const {
    const auto& asked = *call_.arguments[0];
    if (asked.kind != Kind::kSelect) return no_cel("has() asks for a field: 'a.b'", call_.place);
    return made(Kind::kPresent, call_.place, asked.name, asked.arguments);
  }

  Result<Node> all(bool two) const {
    const auto predicate = last();
    DROVER_TRY(auto condition, call("@not_strictly_false", {result()}));
    DROVER_TRY(auto step, made(Kind::kAnd, call_.place, "&&", {result(), predicate}));
    return fold(two, literal(true), condition, step, result());
  }
  Result<Node> exists(bool two) const {
    const auto predicate = last();
    DROVER_TRY(auto none, call("!_", {result()}));
    DROVER_TRY(auto condition, call("@not_strictly_false", {none}));
    DROVER_TRY(auto step, made(Kind::kOr, call_.place, "||", {result(), predicate}));
    return fold(two, literal(false), condition, step, result());
  }
  Result<Node> exists_one(bool two) const {
    DROVER_TRY(auto more, call("_+_", {result(), literal(std::int64_t{1})}));
    DROVER_TRY(auto step, made(Kind::kChoice, call_.place, "@choice", {last(), more, result()}));
    DROVER_TRY(auto end, call("_==_", {result(), literal(std::int64_t{1})}));
    return fold(two, literal(std::int64_t{0}), literal(true), step, end);
  }
  /// map() and transformList(): with a condition when there is an argument more.
  Result<Node> transformed(bool two) const { return appended(two, last(), condition(two)); }
  Result<Node> filtered() const { return appended(false, call_.arguments[1], last()); }

  Result<Node> transformed_map(bool entries) const {
    std::vector<Node> inserted{result()};
    if (!entries) inserted.push_back(call_.arguments[1]);
    inserted.push_back(last());
    DROVER_TRY(auto step, call("cel.@mapInsert", std::move(inserted)));
    DROVER_TRY(auto start, made(Kind::kMap, call_.place, "", {}));
    return conditional(true, std::move(start), std::move(step), condition(true));
  }

  /// `name` is `start` in `body`. Written as a fold over nothing.
  Result<Node> bound(const Node& name, Node start, Node body) const {
    if (name->kind != Kind::kName) return no_cel("the name of a variable is expected", name->place);
    DROVER_TRY(auto nothing, made(Kind::kList, call_.place, "", {}));
    DROVER_TRY(auto node, made(Kind::kFold, call_.place, name->name,
                               {nothing, std::move(start), literal(false), name, std::move(body)}));
    node->variable = "@unused";
    return node;
  }
  Result<Node> optional_map(bool flat) const {
    const auto& operand = call_.arguments[0];
    DROVER_TRY(auto value, call("value", {operand}, true));
    DROVER_TRY(auto mapped, bound(call_.arguments[1], value, last()));
    if (!flat) {
      DROVER_TRY(mapped, call("optional.of", {mapped}));
    }
    DROVER_TRY(auto present, call("hasValue", {operand}, true));
    DROVER_TRY(auto none, call("optional.none", {}));
    return made(Kind::kChoice, call_.place, "@choice", {present, mapped, none});
  }
  Result<Node> sorted() const {
    DROVER_TRY(const auto list, made(Kind::kName, call_.place, "@sorted", {}));
    auto keys_of = std::make_shared<Expression>(call_);
    keys_of->arguments[0] = list;
    DROVER_TRY(auto keys, Expansion(*keys_of).transformed(false));
    DROVER_TRY(auto by_keys, call("@sortByAssociatedKeys", {list, keys}, true));
    return bound(list, call_.arguments[0], by_keys);
  }

 private:
  const Node& last() const { return call_.arguments.back(); }
  /// What stands before the last argument, when it is no variable.
  Node condition(bool two) const {
    const std::size_t without = two ? 4 : 3;
    return call_.arguments.size() > without ? call_.arguments[without - 1] : nullptr;
  }
  Node literal(Value value) const { return cel::literal(call_.place, std::move(value)); }
  Node result() const {
    auto node = std::make_shared<Expression>();
    node->kind = Kind::kName;
    node->place = call_.place;
    node->name = kResultName;
    return node;
  }
  Result<Node> call(const char* name, std::vector<Node> arguments, bool member = false) const {
    DROVER_TRY(auto node, made(Kind::kCall, call_.place, name, std::move(arguments)));
    node->member = member;
    return node;
  }
  Result<Node> appended(bool two, const Node& element, const Node& condition) const {
    DROVER_TRY(auto list, made(Kind::kList, call_.place, "", {element}));
    list->optional = {false};
    DROVER_TRY(auto step, call("_+_", {result(), list}));
    DROVER_TRY(auto start, made(Kind::kList, call_.place, "", {}));
    return conditional(two, std::move(start), std::move(step), condition);
  }
  Result<Node> conditional(bool two, Node start, Node step, const Node& condition) const {
    if (condition != nullptr) {
      DROVER_TRY(step, made(Kind::kChoice, call_.place, "@choice", {condition, step, result()}));
    }
    return fold(two, std::move(start), literal(true), std::move(step), result());
  }
  Result<Node> fold(bool two, Node start, Node condition, Node step, Node end) const {
    for (std::size_t i = 1; i <= (two ? 2 : 1); ++i)
      if (call_.arguments[i]->kind != Kind::kName)
        return no_cel("the name of a variable is expected", call_.arguments[i]->place);
    if (two && call_.arguments[1]->name == call_.arguments[2]->name)
      return no_cel("two variables have the same name", call_.place);
    if (call_.arguments[1]->name == "__result__" || (two && call_.arguments[2]->name == "__result__"))
      return no_cel("'__result__' is reserved", call_.place);
    DROVER_TRY(auto node, made(Kind::kFold, call_.place, kResultName,
                               {call_.arguments[0], std::move(start), std::move(condition), std::move(step),
                                std::move(end)}));
    node->variable = call_.arguments[1]->name;
    if (two) node->variable2 = call_.arguments[2]->name;
    return node;
  }

  const Expression& call_;
};

using Expander = Result<Node> (*)(const Expansion&);

/// By "name/arguments", the list or map before the point not counted.
const std::map<std::string_view, Expander>& member_macros() {
  static const std::map<std::string_view, Expander> kMacros{
      {"all/2", [](const Expansion& e) { return e.all(false); }},
      {"all/3", [](const Expansion& e) { return e.all(true); }},
      {"exists/2", [](const Expansion& e) { return e.exists(false); }},
      {"exists/3", [](const Expansion& e) { return e.exists(true); }},
      {"exists_one/2", [](const Expansion& e) { return e.exists_one(false); }},
      {"exists_one/3", [](const Expansion& e) { return e.exists_one(true); }},
      {"existsOne/3", [](const Expansion& e) { return e.exists_one(true); }},
      {"map/2", [](const Expansion& e) { return e.transformed(false); }},
      {"map/3", [](const Expansion& e) { return e.transformed(false); }},
      {"filter/2", [](const Expansion& e) { return e.filtered(); }},
      {"transformList/3", [](const Expansion& e) { return e.transformed(true); }},
      {"transformList/4", [](const Expansion& e) { return e.transformed(true); }},
      {"transformMap/3", [](const Expansion& e) { return e.transformed_map(false); }},
      {"transformMap/4", [](const Expansion& e) { return e.transformed_map(false); }},
      {"transformMapEntry/3", [](const Expansion& e) { return e.transformed_map(true); }},
      {"transformMapEntry/4", [](const Expansion& e) { return e.transformed_map(true); }},
      {"optMap/2", [](const Expansion& e) { return e.optional_map(false); }},
      {"optFlatMap/2", [](const Expansion& e) { return e.optional_map(true); }},
      {"sortBy/2", [](const Expansion& e) { return e.sorted(); }},
  };
  return kMacros;
}

}  // namespace

Failure too_deep(std::size_t place) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("the selector is nested too deeply, in character {}", place + 1),
              "split it into several selectors: all of them must match");
}

Result<Node> made(Expression::Kind kind, std::size_t place, std::string name, std::vector<Node> arguments) {
  constexpr std::size_t kHighest = 2 * kDeepest;
  auto node = std::make_shared<Expression>();
  node->kind = kind;
  node->place = place;
  node->name = std::move(name);
  for (const auto& argument : arguments) node->height = std::max(node->height, argument->height + 1);
  if (node->height > kHighest) return too_deep(place);
  node->arguments = std::move(arguments);
  return node;
}

Node literal(std::size_t place, Value value) {
  auto node = std::make_shared<Expression>();
  node->place = place;
  node->value = std::move(value);
  return node;
}

Result<Node> expanded(Node call) {
  const Expansion expansion(*call);
  const auto& arguments = call->arguments;
  if (!call->member)
    return call->name == "has" && arguments.size() == 1 ? expansion.has() : Result<Node>(call);
  if (call->name == "bind" && arguments.size() == 4 && arguments[0]->kind == Kind::kName &&
      arguments[0]->name == "cel")
    return expansion.bound(arguments[1], arguments[2], arguments[3]);
  const auto found = member_macros().find(fmt::format("{}/{}", call->name, arguments.size() - 1));
  return found == member_macros().end() ? Result<Node>(call) : found->second(expansion);
}

}  // namespace drover::cel
