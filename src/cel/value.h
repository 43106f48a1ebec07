#pragma once

// What expressions calculate with. A value is immutable and cheap to copy; an error is one of them, so that
// `false && error` can be false. Pure, thread safe.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "cel/semver.h"

namespace drover::cel {

/// What an evaluation may still do. Who has spent it all goes on to answer errors, and ends soon.
class Work {
 public:
  explicit Work(std::size_t most) : left_(most) {}
  bool spend(std::size_t steps);
  /// A text of so many bytes is read or written.
  bool spend_text(std::size_t bytes) { return spend(1 + bytes / 10); }
  /// Whatever is wrong with `why` is wrong with the whole expression.
  void stop(std::string why);
  bool exhausted() const { return exhausted_; }
  const std::string& why() const { return why_; }

 private:
  std::size_t left_;
  bool exhausted_ = false;
  std::string why_ = "the selector takes too much work";
};

class Value;
using List = std::vector<Value>;
struct Map;

struct Null {};
struct Bytes {
  std::string bytes;
};
struct TypeName {
  std::string_view name;  ///< of static storage
};
struct Optional {
  std::shared_ptr<const Value> value;
};
struct Amount {
  Quantity quantity;
  /// Kubernetes' == takes a quantity that was calculated, on its right side, for none.
  bool calculated = false;
};
using Problem = std::shared_ptr<const Error>;

class Value {
 public:
  using Data =
      std::variant<Null, bool, std::int64_t, std::uint64_t, double, std::shared_ptr<const std::string>, Bytes,
                   TypeName, Optional, Amount, std::shared_ptr<const Semver>, std::shared_ptr<const List>,
                   std::shared_ptr<const Map>, Problem>;

  Value() = default;
  Value(bool value) : data_(value) {}           // NOLINT: a value of the language is one of CEL
  Value(std::int64_t value) : data_(value) {}   // NOLINT
  Value(std::uint64_t value) : data_(value) {}  // NOLINT
  Value(double value) : data_(value) {}         // NOLINT
  Value(std::string value);                     // NOLINT
  Value(const char* value) = delete;
  Value(Bytes value) : data_(std::move(value)) {}     // NOLINT
  Value(TypeName value) : data_(value) {}             // NOLINT
  Value(Optional value) : data_(std::move(value)) {}  // NOLINT
  Value(Amount value) : data_(value) {}               // NOLINT
  Value(Semver value);                                // NOLINT
  Value(List value);                                  // NOLINT
  Value(Map value);                                   // NOLINT
  Value(Error error);                                 // NOLINT

  const Data& data() const& { return data_; }
  template <typename T>
  const T* as() const& {
    return std::get_if<T>(&data_);
  }
  template <typename T>
  const T* as() const&& = delete;
  const std::string* text() const;
  const List* list() const;
  const Map* map() const;
  const Semver* semver() const;
  const Error* error() const;
  bool is(bool value) const { return as<bool>() != nullptr && *as<bool>() == value; }
  /// As type() names it.
  std::string_view type_name() const;

 private:
  Data data_;
};

struct Map {
  std::vector<std::pair<Value, Value>> entries;
  bool empty_by_default = false;  ///< a key that it lacks has an empty map: domains of attributes

  /// By key; numbers of another type are the same key where none is lost. Null when it is not there.
  const Value* find(const Value& key, Work& work) const;
};

/// Whether a Go map may have it as a key.
bool is_hashable(const Value& value);
/// A later value takes the place of an earlier one. False for a key that Go cannot have.
bool insert(Map& map, const Value& key, const Value& value, Work& work);

Value problem(std::string message, ErrorKind kind = ErrorKind::kInvalid);
Value no_such_overload(std::string_view function);
Value some(Value value);

/// A bool, or an error where quantities and versions are held against something else.
Value equal(const Value& a, const Value& b, Work& work);
/// -1, 0, 1, or an error.
Value compare(const Value& a, const Value& b);
bool contains(const List& list, const Value& value, Work& work);

/// What `operand[key]` and `operand.key` are; with `present`, what has() and `.?` ask: none where it is
/// missing.
Value element(const Value& operand, const Value& key, bool present, Work& work);

}  // namespace drover::cel
