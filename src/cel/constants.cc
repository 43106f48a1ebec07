#include "cel/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cel/functions.h"
#include "cel/lexer.h"

namespace drover::cel {
namespace {

using Kind = Expression::Kind;

constexpr std::size_t kMostForConstants = 100'000;

bool is_literal(const Node& node) {
  return node->kind == Kind::kLiteral && node->value.as<TypeName>() == nullptr;
}

bool is_primitive(const Value& value) {
  return value.text() != nullptr || value.as<bool>() != nullptr || value.as<std::int64_t>() != nullptr ||
         value.as<std::uint64_t>() != nullptr || value.as<double>() != nullptr;
}

void become(Expression& node, Value value) {
  node.kind = Kind::kLiteral;
  node.value = std::move(value);
  node.arguments.clear();
}

void aggregate(Expression& node) {
  if (!std::ranges::all_of(node.arguments, is_literal) || std::ranges::count(node.optional, true) > 0) return;
  if (node.kind == Kind::kList) {
    List list;
    for (const auto& element : node.arguments) list.push_back(element->value);
    return become(node, std::move(list));
  }
  Map map;
  Work work(kMostForConstants);
  for (std::size_t i = 0; i + 1 < node.arguments.size(); i += 2)
    if (!insert(map, node.arguments[i]->value, node.arguments[i + 1]->value, work)) return;
  become(node, std::move(map));
}

Status conversion(Expression& node) {
  Work work(kMostForConstants);
  for (const auto* overload : node.overloads) {
    if (overload->run == nullptr || !fits(*overload->parameters[0], node.arguments[0]->value)) continue;
    auto value = overload->run({work, std::span(&node.arguments[0]->value, 1)});
    if (const auto* error = value.error()) {
      if (error->kind == ErrorKind::kUnsupported) return Failure(*error);
      return no_cel("a constant cannot be converted", node.place);
    }
    become(node, std::move(value));
    return {};
  }
  return no_cel("a constant cannot be converted", node.place);
}

Status call(Expression& node) {
  static const std::set<std::string_view> kConversions{"bool", "bytes",  "double", "dyn",
                                                       "int",  "string", "type",   "uint"};
  static const std::set<std::string_view> kPatterns{"matches", "find", "findAll"};
  const auto& arguments = node.arguments;
  const bool is_constant =
      arguments.size() == 1 &&
      (is_literal(arguments[0]) || (node.name == "dyn" && arguments[0]->kind == Kind::kLiteral));
  if (is_constant && kConversions.contains(node.name)) return conversion(node);
  if (node.name == "@in" && is_literal(arguments[1]) && arguments[1]->value.list() != nullptr) {
    const auto& list = *arguments[1]->value.list();
    if (list.empty()) {
      become(node, false);
      return {};
    }
    if (std::ranges::all_of(list, is_primitive)) node.overloads = {&find_function("@in_constants")->front()};
  } else if (kPatterns.contains(node.name) && is_literal(arguments[1]) &&
             arguments[1]->value.text() != nullptr) {
    DROVER_TRY(node.pattern, compiled_pattern(*arguments[1]->value.text()));
  } else if ((node.name == "_[_]" || node.name == "_[?_]") && arguments[1]->kind == Kind::kLiteral) {
    const auto& key = arguments[1]->value;
    if (key.as<Null>() != nullptr || key.as<TypeName>() != nullptr || key.as<Bytes>() != nullptr ||
        key.list() != nullptr || key.map() != nullptr)
      return no_cel("a value is used as a key that can be none", node.place);
  }
  return {};
}

}  // namespace

Status calculate_constants(Expression& node) {
  for (auto& argument : node.arguments) DROVER_CHECK_OK(calculate_constants(*argument));
  if (node.kind == Kind::kList || node.kind == Kind::kMap) aggregate(node);
  return node.kind == Kind::kCall ? call(node) : Status();
}

}  // namespace drover::cel
