#pragma once

// Static types, and how what is not known yet is found out. Pure.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/expression.h"

namespace drover::cel {

struct Type {
  enum class Kind {
    kDynamic,
    kNull,
    kBool,
    kInt,
    kUint,
    kDouble,
    kString,
    kBytes,
    kList,
    kMap,
    kType,
    kOptional,
    kObject,
    kVariable
  };
  Kind kind = Kind::kDynamic;
  std::string name;             ///< of an object
  std::size_t variable = 0;     ///< number of a variable
  std::vector<TypePointer> of;  ///< elements; keys and values
  std::size_t size = 1;         ///< of the whole tree

  bool operator==(const Type& other) const;
};

TypePointer simple(Type::Kind kind);
TypePointer object(std::string name);
TypePointer compound(Type::Kind kind, std::vector<TypePointer> of);
/// The type of a value of which nothing else is known.
TypePointer type_of(const Value& literal);
/// Whether the first of two types that go together is the more general one.
bool is_general(const Type& a, const Type& b);
/// Whether a value may be handed over where this is expected.
bool fits(const Type& type, const Value& value);

/// What is known of variables. Types of hostile expressions grow without end: work() is what it has cost.
class Substitution {
 public:
  TypePointer fresh();
  /// Variables are bound so that it is; none are when it cannot be.
  bool assignable(const std::vector<TypePointer>& from, const std::vector<TypePointer>& to);
  /// With what is known put in; the rest becomes dynamic when `closed`.
  TypePointer applied(const TypePointer& type, bool closed = false);
  std::size_t work() const { return work_; }

 private:
  bool unify(const TypePointer& from, const TypePointer& to);
  /// Whether it could be bound, and whether it was bound before.
  std::pair<bool, bool> bind(const TypePointer& type, const TypePointer& variable);
  bool occurs(const TypePointer& variable, const TypePointer& within);
  void set(std::size_t variable, TypePointer type);

  std::vector<TypePointer> bound_;
  std::vector<std::pair<std::size_t, TypePointer>> before_;  ///< what to put back
  std::size_t work_ = 0;
};

}  // namespace drover::cel
