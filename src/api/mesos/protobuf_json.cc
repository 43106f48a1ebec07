#include "api/mesos/protobuf_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/sandbox.h"

namespace drover::api::mesos {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::json;

Failure unexpected(const json& value, const FieldDescriptor& field) {
  const char* type = value.is_object()    ? "object"
                     : value.is_array()   ? "array"
                     : value.is_string()  ? "string"
                     : value.is_boolean() ? "boolean"
                                          : "number";
  return fail(ErrorKind::kInvalid, fmt::format("Not expecting a JSON {} for field '{}'", type, field.name()));
}

/// Some writers put numbers and booleans in quotes; Mesos takes them so.
json without_quotes(const json& value) {
  if (!value.is_string()) return value;
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty() || text.find_first_of(" \t\r\n") != std::string::npos) return value;
  auto inner = json::parse(text, nullptr, false);
  return inner.is_number() || inner.is_boolean() ? inner : value;
}

/// A whole number that `T` can hold.
template <typename T>
std::optional<T> whole_number(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return std::in_range<T>(number) ? std::optional(static_cast<T>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    return std::in_range<T>(number) ? std::optional(static_cast<T>(number)) : std::nullopt;
  }
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  // 2^63 and 2^64 are exact as doubles; their predecessors are not.
  const auto limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (number != std::floor(number) || number >= limit || number < (std::is_signed_v<T> ? -limit : 0.0))
    return std::nullopt;
  return static_cast<T>(number);
}

/// Also what JSON has no number for, as limits of "Infinity".
std::optional<double> real_number(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Sets a field, or adds to it when it is repeated.
class Setter {
 public:
  Setter(Message& message, const FieldDescriptor& field)
      : message_(message), reflection_(*message.GetReflection()), field_(field) {}

  Status set(const json& value) {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return integer<std::int32_t>(value, &R::SetInt32, &R::AddInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return integer<std::int64_t>(value, &R::SetInt64, &R::AddInt64);
      case FieldDescriptor::CPPTYPE_UINT32:
        return integer<std::uint32_t>(value, &R::SetUInt32, &R::AddUInt32);
      case FieldDescriptor::CPPTYPE_UINT64:
        return integer<std::uint64_t>(value, &R::SetUInt64, &R::AddUInt64);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return real<double>(value, &R::SetDouble, &R::AddDouble);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return real<float>(value, &R::SetFloat, &R::AddFloat);
      case FieldDescriptor::CPPTYPE_BOOL:
        return boolean(value);
      case FieldDescriptor::CPPTYPE_ENUM:
        return enumeration(value);
      case FieldDescriptor::CPPTYPE_STRING:
        return string(value);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return message(value);
    }
    return fail(ErrorKind::kInternal, fmt::format("The field '{}' is of an unknown kind", field_.name()));
  }

 private:
  using R = google::protobuf::Reflection;

  template <typename T, typename Set, typename Add>
  Status put(T value, Set set, Add add) {
    if (field_.is_repeated())
      (reflection_.*add)(&message_, &field_, std::move(value));
    else
      (reflection_.*set)(&message_, &field_, std::move(value));
    return {};
  }
  template <typename T, typename Set, typename Add>
  Status integer(const json& value, Set set, Add add) {
    const auto number = whole_number<T>(without_quotes(value));
    if (!number) return unexpected(value, field_);
    return put(*number, set, add);
  }
  template <typename T, typename Set, typename Add>
  Status real(const json& value, Set set, Add add) {
    const auto number = real_number(without_quotes(value));
    if (!number) return unexpected(value, field_);
    return put(static_cast<T>(*number), set, add);
  }
  Status boolean(const json& value) {
    const auto plain = without_quotes(value);
    if (!plain.is_boolean()) return unexpected(value, field_);
    return put(plain.get<bool>(), &R::SetBool, &R::AddBool);
  }
  Status enumeration(const json& value) {
    if (!value.is_string()) return unexpected(value, field_);
    const auto& name = value.get_ref<const std::string&>();
    const auto* found = field_.enum_type()->FindValueByName(name);
    if (found != nullptr) return put(found, &R::SetEnum, &R::AddEnum);
    if (field_.is_required())
      return fail(ErrorKind::kInvalid, fmt::format("Failed to find enum for '{}'", name));
    return {};
  }
  Status string(const json& value) {
    if (!value.is_string()) return unexpected(value, field_);
    auto text = value.get<std::string>();
    if (field_.type() == FieldDescriptor::TYPE_BYTES) {
      auto bytes = decode_base64(text);
      if (!bytes)
        return fail(ErrorKind::kInvalid,
                    fmt::format("Failed to base64 decode bytes field '{}'", field_.name()));
      text = std::move(*bytes);
    }
    return put(std::move(text), &R::SetString, &R::AddString);
  }
  Status message(const json& value) {
    if (!value.is_object()) return unexpected(value, field_);
    auto* const inner = field_.is_repeated() ? reflection_.AddMessage(&message_, &field_)
                                             : reflection_.MutableMessage(&message_, &field_);
    return from_json(value, *inner);
  }

  Message& message_;
  const R& reflection_;
  const FieldDescriptor& field_;
};

/// {"key": value, …}
Status set_map(const json& value, Message& message, const FieldDescriptor& field) {
  if (!value.is_object()) return unexpected(value, field);
  for (const auto& [key, mapped] : value.items()) {
    if (mapped.is_null()) continue;
    auto* const entry = message.GetReflection()->AddMessage(&message, &field);
    DROVER_CHECK_OK(Setter(*entry, *field.message_type()->map_key()).set(key));
    DROVER_CHECK_OK(Setter(*entry, *field.message_type()->map_value()).set(mapped));
  }
  return {};
}

Status set_field(const json& value, Message& message, const FieldDescriptor& field) {
  if (value.is_null()) return {};
  if (field.is_map()) return set_map(value, message, field);
  // A lone value is one item of a repeated field: old clients write it so, and Mesos takes it.
  if (!field.is_repeated() || !value.is_array()) return Setter(message, field).set(value);
  for (const auto& item : value)
    if (!item.is_null()) DROVER_CHECK_OK(Setter(message, field).set(item));
  return {};
}

/// JSON has no number for what is not finite.
void write_number(JsonWriter& writer, double number) {
  if (std::isfinite(number))
    writer.value(number);
  else
    writer.value(std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
}

void write_message(JsonWriter& writer, const Message& message);

/// One value of a field: the field's own, or item `index` of a repeated one.
void write_value(JsonWriter& writer, const Message& message, const FieldDescriptor& field,
                 std::optional<int> index) {
  const auto& reflection = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return index ? (reflection.*repeated)(message, &field, *index) : (reflection.*single)(message, &field);
  };
  using R = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return writer.value(get(&R::GetInt32, &R::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return writer.value(get(&R::GetInt64, &R::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT32:
      return writer.value(get(&R::GetUInt32, &R::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return writer.value(get(&R::GetUInt64, &R::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return write_number(writer, get(&R::GetDouble, &R::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return write_number(writer, static_cast<double>(get(&R::GetFloat, &R::GetRepeatedFloat)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return writer.value(get(&R::GetBool, &R::GetRepeatedBool));
    case FieldDescriptor::CPPTYPE_ENUM:
      return writer.value(get(&R::GetEnum, &R::GetRepeatedEnum)->name());
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      const auto& text = index ? reflection.GetRepeatedStringReference(message, &field, *index, &scratch)
                               : reflection.GetStringReference(message, &field, &scratch);
      if (field.type() == FieldDescriptor::TYPE_BYTES) return writer.value(encode_base64(text));
      return writer.value(text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return write_message(writer, index ? reflection.GetRepeatedMessage(message, &field, *index)
                                         : reflection.GetMessage(message, &field));
  }
}

std::string map_key_of(const Message& entry) {
  const auto& field = *entry.GetDescriptor()->map_key();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING)
    return entry.GetReflection()->GetString(entry, &field);
  std::string text;
  JsonWriter writer(text);
  write_value(writer, entry, field, std::nullopt);
  return text;
}

/// {"key": value, …}
void write_map(JsonWriter& writer, const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  writer.begin_object();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const auto& entry = reflection.GetRepeatedMessage(message, &field, i);
    writer.key(map_key_of(entry));
    write_value(writer, entry, *field.message_type()->map_value(), std::nullopt);
  }
  writer.end_object();
}

void write_repeated(JsonWriter& writer, const Message& message, const FieldDescriptor& field) {
  writer.begin_array();
  const auto size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) write_value(writer, message, field, i);
  writer.end_array();
}

void write_message(JsonWriter& writer, const Message& message) {
  const auto& reflection = *message.GetReflection();
  const auto& descriptor = *message.GetDescriptor();
  writer.begin_object();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const auto& field = *descriptor.field(i);
    const bool written = field.is_repeated()
                             ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field) ||
                                   (field.has_default_value() && !field.options().deprecated());
    if (!written) continue;
    writer.key(field.name());
    if (field.is_map())
      write_map(writer, message, field);
    else if (field.is_repeated())
      write_repeated(writer, message, field);
    else
      write_value(writer, message, field, std::nullopt);
  }
  writer.end_object();
}

}  // namespace

Status from_json(const json& value, Message& message) {
  if (!value.is_object()) return fail(ErrorKind::kInvalid, "Expecting a JSON object");
  for (const auto& [name, field_value] : value.items()) {
    const auto* const field = message.GetDescriptor()->FindFieldByName(name);
    if (field != nullptr) DROVER_CHECK_OK(set_field(field_value, message, *field));
  }
  return {};
}

std::string to_json(const Message& message) {
  std::string text;
  JsonWriter writer(text);
  write_message(writer, message);
  return text;
}

namespace {

/// What stands in one field, below its name; nullopt when all of it is text.
std::optional<std::string> find_no_utf8(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  std::string scratch;
  for (int i = 0; i < count; ++i) {
    if (field.type() == FieldDescriptor::TYPE_STRING) {
      const auto& text = field.is_repeated()
                             ? reflection.GetRepeatedStringReference(message, &field, i, &scratch)
                             : reflection.GetStringReference(message, &field, &scratch);
      if (!is_utf8(text)) return "";
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const auto& inner = field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, i)
                                              : reflection.GetMessage(message, &field);
      if (auto path = mesos::find_no_utf8(inner)) return "." + *path;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_no_utf8(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const auto* field : fields)
    if (const auto below = find_no_utf8(message, *field)) return field->name() + *below;
  return std::nullopt;
}

}  // namespace drover::api::mesos
