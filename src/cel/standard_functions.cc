#include <cmath>
#include <limits>

#include "cel/functions.h"
#include "cel/text.h"

// Operators and conversions.
namespace drover::cel {
namespace {

Value overflow() {
  return problem("a number is too large or too small");
}

template <typename T>
Value calculated(char operation, T a, T b) {
  T result = 0;
  if ((operation == '/' || operation == '%') && b == 0) return problem("division by zero");
  if constexpr (std::is_signed_v<T>)
    if ((operation == '/' || operation == '%') && b == -1 && a == std::numeric_limits<T>::min())
      return overflow();
  const bool wrong = operation == '+'   ? __builtin_add_overflow(a, b, &result)
                     : operation == '-' ? __builtin_sub_overflow(a, b, &result)
                     : operation == '*' ? __builtin_mul_overflow(a, b, &result)
                                        : false;
  if (wrong) return overflow();
  if (operation == '/') result = a / b;
  if (operation == '%') result = a % b;
  return result;
}

template <char kOperation>
Value arithmetic(const Call& call) {
  const auto &a = call.arguments[0], &b = call.arguments[1];
  if (a.data().index() != b.data().index()) return no_such_overload(std::string(1, kOperation));
  if (const auto* number = a.as<std::int64_t>())
    return calculated(kOperation, *number, *b.as<std::int64_t>());
  if (const auto* number = a.as<std::uint64_t>())
    return calculated(kOperation, *number, *b.as<std::uint64_t>());
  const auto *x = a.as<double>(), *y = b.as<double>();
  if (x != nullptr && kOperation != '%')
    return kOperation == '+' ? *x + *y : kOperation == '-' ? *x - *y : kOperation == '*' ? *x * *y : *x / *y;
  return no_such_overload(std::string(1, kOperation));
}

Value add(const Call& call) {
  const auto &a = call.arguments[0], &b = call.arguments[1];
  if (a.text() != nullptr && b.text() != nullptr) {
    if (!call.work.spend_text(a.text()->size() + b.text()->size())) return overflow();
    return *a.text() + *b.text();
  }
  if (const auto *x = a.as<Bytes>(), *y = b.as<Bytes>(); x != nullptr && y != nullptr) {
    if (!call.work.spend_text(x->bytes.size() + y->bytes.size())) return overflow();
    return Bytes{x->bytes + y->bytes};
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    if (!call.work.spend(1 + (a.list()->size() + b.list()->size()) / 10)) return overflow();
    List both = *a.list();
    both.insert(both.end(), b.list()->begin(), b.list()->end());
    return both;
  }
  return arithmetic<'+'>(call);
}

Value negate(const Call& call) {
  if (const auto* number = call.arguments[0].as<double>()) return -*number;
  if (const auto* number = call.arguments[0].as<std::int64_t>())
    return *number == std::numeric_limits<std::int64_t>::min() ? overflow() : Value(-*number);
  return no_such_overload("-");
}

Value is_not(const Call& call) {
  const auto* value = call.arguments[0].as<bool>();
  return value == nullptr ? no_such_overload("!") : Value(!*value);
}

Value is_equal(const Call& call) {
  return equal(call.arguments[0], call.arguments[1], call.work);
}
Value is_different(const Call& call) {
  return !equal(call.arguments[0], call.arguments[1], call.work).is(true);
}

/// Whether the order is the one number or the other.
template <int kThis, int kOr>
Value ordered(const Call& call) {
  const auto &a = call.arguments[0], &b = call.arguments[1];
  if (const auto* text = a.text()) call.work.spend_text(text->size());
  auto order = compare(a, b);
  const auto* number = order.as<std::int64_t>();
  return number == nullptr ? order : Value(*number == kThis || *number == kOr);
}

Value is_in(const Call& call) {
  if (const auto* list = call.arguments[1].list()) return contains(*list, call.arguments[0], call.work);
  const auto* map = call.arguments[1].map();
  if (map == nullptr) return no_such_overload("in");
  if (!is_hashable(call.arguments[0]))
    return problem("bytes and versions are no keys here", ErrorKind::kUnsupported);
  auto plain = *map;
  plain.empty_by_default = false;
  return plain.find(call.arguments[0], call.work) != nullptr;
}

/// Of a list that is written in the text: Kubernetes makes a Go map of it.
Value is_in_constants(const Call& call) {
  return is_hashable(call.arguments[0]) ? is_in(call)
                                        : problem("bytes and versions are in no list of constants");
}

Value size(const Call& call) {
  const auto& value = call.arguments[0];
  const auto number = [](std::size_t size) { return Value(static_cast<std::int64_t>(size)); };
  if (const auto* text = value.text()) {
    call.work.spend_text(text->size());
    return number(code_points(*text).size() - 1);
  }
  if (const auto* bytes = value.as<Bytes>()) return number(bytes->bytes.size());
  if (const auto* list = value.list()) return number(list->size());
  return number(value.map()->entries.size());
}

/// What was read, or an error.
template <typename T>
Value read(const std::optional<T>& value) {
  return value ? Value(*value) : problem("a text cannot be converted");
}

Value unchanged(const Call& call) {
  return call.arguments[0];
}

Value to_int(const Call& call) {
  const auto& value = call.arguments[0];
  if (const auto* text = value.text()) return read(parse_whole<std::int64_t>(*text));
  if (const auto* number = value.as<std::uint64_t>())
    return *number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
               ? overflow()
               : Value(static_cast<std::int64_t>(*number));
  constexpr double kLimit = 9223372036854775808.0;
  const double number = *value.as<double>();
  return -kLimit < number && number < kLimit ? Value(static_cast<std::int64_t>(number)) : overflow();
}

Value to_uint(const Call& call) {
  const auto& value = call.arguments[0];
  if (const auto* text = value.text()) return read(parse_whole<std::uint64_t>(*text));
  if (const auto* number = value.as<std::int64_t>())
    return *number < 0 ? overflow() : Value(static_cast<std::uint64_t>(*number));
  constexpr double kLimit = 18446744073709551616.0;
  const double number = *value.as<double>();
  return 0 <= number && number < kLimit ? Value(static_cast<std::uint64_t>(number)) : overflow();
}

Value to_double(const Call& call) {
  const auto& value = call.arguments[0];
  if (const auto* number = value.as<std::int64_t>()) return static_cast<double>(*number);
  if (const auto* number = value.as<std::uint64_t>()) return static_cast<double>(*number);
  if (lower(*value.text()).find("0x") != std::string::npos)
    return problem("a hexadecimal fraction is not read here", ErrorKind::kUnsupported);
  return read(parse_double(*value.text()));
}

Value to_bool(const Call& call) {
  const auto& text = *call.arguments[0].text();
  for (const auto* yes : {"1", "t", "T", "true", "TRUE", "True"})
    if (text == yes) return true;
  for (const auto* no : {"0", "f", "F", "false", "FALSE", "False"})
    if (text == no) return false;
  return problem("a text is neither true nor false");
}

Value to_string(const Call& call) {
  const auto& value = call.arguments[0];
  if (const auto* number = value.as<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = value.as<std::uint64_t>()) return std::to_string(*number);
  if (const auto* number = value.as<double>()) return to_text(*number);
  if (const auto* flag = value.as<bool>()) return std::string(*flag ? "true" : "false");
  const auto& bytes = value.as<Bytes>()->bytes;
  call.work.spend_text(bytes.size());
  return is_utf8(bytes) ? Value(bytes) : problem("bytes are no UTF-8");
}

Value to_bytes(const Call& call) {
  return Bytes{*call.arguments[0].text()};
}

Value type(const Call& call) {
  return TypeName{call.arguments[0].type_name()};
}

Value chosen_index(const Call& call) {
  return element(call.arguments[0], call.arguments[1], false, call.work);
}
Value chosen_if_there(const Call& call) {
  return element(call.arguments[0], call.arguments[1], true, call.work);
}

Value inserted(const Call& call) {
  Map map = *call.arguments[0].map();
  map.empty_by_default = false;
  const auto insert = [&](const Value& key, const Value& value) {
    call.work.spend(1 + map.entries.size() / 10);
    if (map.find(key, call.work) != nullptr) return false;
    map.entries.emplace_back(key, value);
    return true;
  };
  bool done = true;
  if (call.arguments.size() == 3)
    done = insert(call.arguments[1], call.arguments[2]);
  else
    for (const auto& [key, value] : call.arguments[1].map()->entries) done = done && insert(key, value);
  return done ? Value(std::move(map)) : problem("a key is there already");
}

#define ORDER(symbol)                                                                                 \
  "_" symbol "_(bool,bool)->bool;_" symbol "_(int,int)->bool;_" symbol "_(int,double)->bool;_" symbol \
  "_(int,uint)->bool;_" symbol "_(uint,uint)->bool;_" symbol "_(uint,double)->bool;_" symbol          \
  "_(uint,int)->bool;_" symbol "_(double,double)->bool;_" symbol "_(double,int)->bool;_" symbol       \
  "_(double,uint)->bool;_" symbol "_(string,string)->bool;_" symbol "_(bytes,bytes)->bool;_" symbol   \
  "_(Timestamp,Timestamp)->bool;_" symbol "_(Duration,Duration)->bool"

constexpr Declaration kStandard[]{
    // Nothing here is a time, but null is taken for one.
    {"_+_(bytes,bytes)->bytes;_+_(Duration,Duration)->Duration;_+_(Duration,Timestamp)->Timestamp;"
     "_+_(Timestamp,Duration)->Timestamp;_+_(double,double)->double;_+_(int,int)->int;_+_(list<A>,list<A>)->"
     "list<A>;"
     "_+_(string,string)->string;_+_(uint,uint)->uint",
     add, kUnguarded},
    {"_-_(double,double)->double;_-_(Duration,Duration)->Duration;_-_(int,int)->int;"
     "_-_(Timestamp,Duration)->Timestamp;_-_(Timestamp,Timestamp)->Duration;_-_(uint,uint)->uint",
     arithmetic<'-'>, kUnguarded},
    {"_*_(double,double)->double;_*_(int,int)->int;_*_(uint,uint)->uint", arithmetic<'*'>, kUnguarded},
    {"_/_(double,double)->double;_/_(int,int)->int;_/_(uint,uint)->uint", arithmetic<'/'>, kUnguarded},
    {"_%_(int,int)->int;_%_(uint,uint)->uint", arithmetic<'%'>, kUnguarded},
    {"-_(double)->double;-_(int)->int", negate, kUnguarded},
    {"!_(bool)->bool", is_not, kUnguarded},
    {"_==_(A,A)->bool", is_equal, kUnguarded},
    {"_!=_(A,A)->bool", is_different, kUnguarded},
    {ORDER("<"), ordered<-1, -1>, kUnguarded},
    {ORDER("<="), ordered<-1, 0>, kUnguarded},
    {ORDER(">"), ordered<1, 1>, kUnguarded},
    {ORDER(">="), ordered<1, 0>, kUnguarded},
    {"@in(A,list<A>)->bool;@in(A,map<A,B>)->bool", is_in, kUnguarded},
    {"@in_constants(A,list<A>)->bool", is_in_constants, kUnguarded},
    {"@choice(bool,A,A)->A", nullptr, kUnguarded},
    {"@not_strictly_false(bool)->bool", nullptr, Overload::Way::kNotStrictlyFalse},
    {"_[_](list<A>,int)->A;_[_](map<A,B>,A)->B;_[_](optional<list<A>>,int)->optional<A>;"
     "_[_](optional<map<A,B>>,A)->optional<B>",
     chosen_index, kUnguarded},
    {"_[?_](list<A>,int)->optional<A>;_[?_](optional<list<A>>,int)->optional<A>;"
     "_[?_](map<A,B>,A)->optional<B>;_[?_](optional<map<A,B>>,A)->optional<B>",
     chosen_if_there, kUnguarded},
    {"cel.@mapInsert(map<A,B>,A,B)->map<A,B>;cel.@mapInsert(map<A,B>,map<A,B>)->map<A,B>", inserted},
    {"size(bytes)->int;bytes:size()->int;size(list<A>)->int;list<A>:size()->int;size(map<A,B>)->int;"
     "map<A,B>:size()->int;size(string)->int;string:size()->int",
     size},
    {"type(A)->type<A>", type},
    {"dyn(A)->dyn", unchanged},
    {"bool(bool)->bool;bytes(bytes)->bytes;double(double)->double;int(int)->int;uint(uint)->uint;"
     "string(string)->string",
     unchanged},
    {"bool(string)->bool", to_bool},
    {"bytes(string)->bytes", to_bytes},
    {"double(int)->double;double(string)->double;double(uint)->double", to_double},
    {"int(double)->int;int(Duration)->int;int(string)->int;int(Timestamp)->int;int(uint)->int", to_int},
    {"uint(double)->uint;uint(int)->uint;uint(string)->uint", to_uint},
    {"string(bool)->string;string(bytes)->string;string(double)->string;string(Duration)->string;"
     "string(int)->string;string(Timestamp)->string;string(uint)->string",
     to_string},
};

#undef ORDER

}  // namespace

std::span<const Declaration> standard_functions() {
  return kStandard;
}

}  // namespace drover::cel
