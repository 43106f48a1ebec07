#include "cel/types.h"

#include <algorithm>
#include <array>

namespace drover::cel {
namespace {

constexpr std::size_t kMostSubstitutions = 1'000'000;

bool takes_null(const Type& type) {
  return type.kind == Type::Kind::kNull || type.kind == Type::Kind::kOptional ||
         type.kind == Type::Kind::kObject;
}

}  // namespace

bool Type::operator==(const Type& other) const {
  return kind == other.kind && name == other.name && variable == other.variable &&
         std::ranges::equal(of, other.of, [](const auto& a, const auto& b) { return a == b || *a == *b; });
}

bool is_general(const Type& a, const Type& b) {
  if (a.kind == Type::Kind::kDynamic || a.kind == Type::Kind::kVariable) return true;
  if (b.kind == Type::Kind::kDynamic || b.kind == Type::Kind::kVariable || a.kind != b.kind) return false;
  if (a.kind == Type::Kind::kObject) return a.name == b.name;
  if (a.kind == Type::Kind::kType) return true;
  return std::ranges::equal(a.of, b.of, [](const auto& x, const auto& y) { return is_general(*x, *y); });
}

TypePointer simple(Type::Kind kind) {
  return std::make_shared<const Type>(Type{kind, {}, 0, {}});
}
TypePointer object(std::string name) {
  return std::make_shared<const Type>(Type{Type::Kind::kObject, std::move(name), 0, {}});
}
TypePointer compound(Type::Kind kind, std::vector<TypePointer> of) {
  std::size_t size = 1;
  for (const auto& one : of) size = std::min(size + one->size, kMostSubstitutions);
  return std::make_shared<const Type>(Type{kind, {}, 0, std::move(of), size});
}

namespace {

constexpr std::array<std::string_view, 12> kTypeNames{"",     "null_type", "bool",   "int",
                                                      "uint", "double",    "string", "bytes",
                                                      "list", "map",       "type",   "optional_type"};

TypePointer type_behind(std::string_view name) {
  const auto kind = static_cast<Type::Kind>(std::ranges::find(kTypeNames, name) - kTypeNames.begin());
  const auto any = simple(Type::Kind::kDynamic);
  if (kind == Type::Kind::kList || kind == Type::Kind::kOptional) return compound(kind, {any});
  return kind == Type::Kind::kMap ? compound(kind, {any, any}) : simple(kind);
}

}  // namespace

TypePointer type_of(const Value& literal) {
  constexpr std::array kKinds{Type::Kind::kNull,   Type::Kind::kBool,   Type::Kind::kInt,  Type::Kind::kUint,
                              Type::Kind::kDouble, Type::Kind::kString, Type::Kind::kBytes};
  if (const auto* type = literal.as<TypeName>())
    return compound(Type::Kind::kType, {type_behind(type->name)});
  return simple(kKinds.at(literal.data().index()));
}

bool fits(const Type& type, const Value& value) {
  if (type.kind == Type::Kind::kDynamic || type.kind == Type::Kind::kVariable) return true;
  if (value.type_name() != (type.kind == Type::Kind::kObject
                                ? std::string_view(type.name)
                                : kTypeNames.at(static_cast<std::size_t>(type.kind))))
    return false;
  if (type.kind == Type::Kind::kList)
    return value.list()->empty() || fits(*type.of[0], value.list()->front());
  if (type.kind != Type::Kind::kMap || value.map()->entries.empty()) return true;
  const auto& [key, element] = value.map()->entries.front();
  return fits(*type.of[0], key) && fits(*type.of[1], element);
}

TypePointer Substitution::fresh() {
  bound_.emplace_back();
  return std::make_shared<const Type>(Type{Type::Kind::kVariable, {}, bound_.size() - 1, {}});
}

void Substitution::set(std::size_t variable, TypePointer type) {
  before_.emplace_back(variable, std::exchange(bound_[variable], std::move(type)));
}

bool Substitution::assignable(const std::vector<TypePointer>& from, const std::vector<TypePointer>& to) {
  if (from.size() != to.size()) return false;
  before_.clear();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (unify(from[i], to[i])) continue;
    for (auto change = before_.rbegin(); change != before_.rend(); ++change)
      bound_[change->first] = change->second;
    return false;
  }
  return true;
}

TypePointer Substitution::applied(const TypePointer& type, bool closed) {
  if (++work_ > kMostSubstitutions) return type;
  if (type->kind == Type::Kind::kVariable) {
    if (const auto& known = bound_[type->variable]) return applied(known, closed);
    return closed ? simple(Type::Kind::kDynamic) : type;
  }
  if (type->of.empty()) return type;
  auto of = type->of;
  for (auto& one : of) one = applied(one, closed);
  return of == type->of ? type : compound(type->kind, std::move(of));
}

bool Substitution::unify(const TypePointer& from, const TypePointer& to) {
  if (++work_ > kMostSubstitutions) return false;
  if (to->kind == Type::Kind::kVariable) {
    const auto [valid, known] = bind(from, to);
    if (valid || known) return valid;
  }
  if (from->kind == Type::Kind::kVariable) return bind(to, from).first;
  if (from->kind == Type::Kind::kDynamic || to->kind == Type::Kind::kDynamic) return true;
  if (from->kind == Type::Kind::kNull) return takes_null(*to);
  if (to->kind == Type::Kind::kNull) return takes_null(*from);
  if (from->kind != to->kind) return false;
  if (from->kind == Type::Kind::kType) return true;
  if (from->kind == Type::Kind::kObject) return from->name == to->name;
  for (std::size_t i = 0; i < from->of.size(); ++i)
    if (!unify(from->of[i], to->of[i])) return false;
  return true;
}

std::pair<bool, bool> Substitution::bind(const TypePointer& type, const TypePointer& variable) {
  if (type->kind == Type::Kind::kVariable && type->variable == variable->variable) return {true, true};
  if (const auto known = bound_[variable->variable]) {
    if (type == known || *type == *known) return {true, true};
    if (!unify(type, known)) return {false, true};
    const auto& general = is_general(*type, *known) ? type : known;
    if (!occurs(variable, general)) set(variable->variable, general);
    return {true, true};
  }
  if (occurs(variable, type)) return {false, false};
  set(variable->variable, type);
  return {true, false};
}

bool Substitution::occurs(const TypePointer& variable, const TypePointer& within) {
  if (++work_ > kMostSubstitutions) return true;
  if (within->kind == Type::Kind::kVariable) {
    if (within->variable == variable->variable) return true;
    const auto known = bound_[within->variable];
    return known != nullptr && occurs(variable, known);
  }
  return std::ranges::any_of(within->of, [&](const auto& one) { return occurs(variable, one); });
}

}  // namespace drover::cel
