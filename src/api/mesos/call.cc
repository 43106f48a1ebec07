#include "api/mesos/call.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <nlohmann/json.hpp>

#include "api/mesos/protobuf_json.h"
#include "api/mesos/record_io.h"
#include "api/mesos/values.h"
#include "base/decode.h"

namespace drover::api::mesos {
namespace {

using google::protobuf::Message;

constexpr std::size_t kUuidBytes = 16;

/// Also quiet: protobuf would log what is missing.
Status whole(const Message& call, std::string_view what) {
  if (call.IsInitialized()) return {};
  return invalid(std::string(what) + call.InitializationErrorString());
}

Status decode_json(std::string_view body, Message& call) {
  const auto value = parse_json(body, "The body");
  if (!value) return invalid("Failed to parse body into JSON: " + to_string(value.error()));
  const std::string prefix = "Failed to convert JSON into Call protobuf: ";
  if (const auto read = from_json(*value, call); !read) return invalid(prefix + read.error().message);
  return whole(call, prefix + "Missing required fields: ");
}

Status decode_protobuf(std::string_view body, Message& call) {
  google::protobuf::io::ArrayInputStream bytes(body.data(), static_cast<int>(body.size()));
  google::protobuf::io::CodedInputStream stream(&bytes);
  const bool read = call.ParsePartialFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (!read || !call.IsInitialized()) return invalid("Failed to parse body into Call protobuf");
  if (const auto path = find_no_utf8(call))
    return invalid("Failed to parse body into Call protobuf: '" + *path + "' is not UTF-8");
  return {};
}

Status decode_body(std::string_view body, MediaType type, Message& call) {
  return type == MediaType::kJson ? decode_json(body, call) : decode_protobuf(body, call);
}

std::string bytes_of(const Message& message, MediaType type) {
  return type == MediaType::kJson ? to_json(message) : message.SerializePartialAsString();
}

Status needs(bool has, std::string_view name) {
  if (has) return {};
  return invalid("Expecting '" + std::string(name) + "' to be present");
}

Status validate_subscribe(const v1::Call& call) {
  DROVER_CHECK_OK(needs(call.has_subscribe(), "subscribe"));
  if (call.subscribe().framework_info().id().value() != call.framework_id().value())
    return invalid("'framework_id' differs from 'subscribe.framework_info.id'");
  return {};
}

Status validate_update_framework(const v1::Call& call) {
  DROVER_CHECK_OK(needs(call.has_update_framework(), "update_framework"));
  if (call.update_framework().framework_info().id().value() != call.framework_id().value())
    return invalid("'framework_id' differs from 'update_framework.framework_info.id'");
  return {};
}

Status needs_uuid(const std::string& bytes) {
  if (bytes.size() != kUuidBytes) return invalid("Not a valid UUID");
  return {};
}

Status validate_acknowledge(const v1::Call& call) {
  DROVER_CHECK_OK(needs(call.has_acknowledge(), "acknowledge"));
  return needs_uuid(call.acknowledge().uuid());
}

Status validate_acknowledge_operation(const v1::Call& call) {
  DROVER_CHECK_OK(needs(call.has_acknowledge_operation_status(), "acknowledge_operation_status"));
  return needs_uuid(call.acknowledge_operation_status().uuid());
}

}  // namespace

Response text_response(int status, std::string text) {
  Response response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

Status validate_call(const v1::Call& call) {
  DROVER_CHECK_OK(needs(call.has_type(), "type"));
  if (call.type() == v1::Call::SUBSCRIBE) return validate_subscribe(call);
  DROVER_CHECK_OK(needs(call.has_framework_id(), "framework_id"));
  switch (call.type()) {
    case v1::Call::ACCEPT:
      return needs(call.has_accept(), "accept");
    case v1::Call::DECLINE:
      return needs(call.has_decline(), "decline");
    case v1::Call::ACCEPT_INVERSE_OFFERS:
      return needs(call.has_accept_inverse_offers(), "accept_inverse_offers");
    case v1::Call::DECLINE_INVERSE_OFFERS:
      return needs(call.has_decline_inverse_offers(), "decline_inverse_offers");
    case v1::Call::KILL:
      return needs(call.has_kill(), "kill");
    case v1::Call::SHUTDOWN:
      return needs(call.has_shutdown(), "shutdown");
    case v1::Call::ACKNOWLEDGE:
      return validate_acknowledge(call);
    case v1::Call::ACKNOWLEDGE_OPERATION_STATUS:
      return validate_acknowledge_operation(call);
    case v1::Call::RECONCILE_OPERATIONS:
      return needs(call.has_reconcile_operations(), "reconcile_operations");
    case v1::Call::UPDATE_FRAMEWORK:
      return validate_update_framework(call);
    case v1::Call::RECONCILE:
      return needs(call.has_reconcile(), "reconcile");
    case v1::Call::MESSAGE:
      return needs(call.has_message(), "message");
    case v1::Call::REQUEST:
      return needs(call.has_request(), "request");
    default:
      return {};
  }
}

Result<v1::Call> decode_call(std::string_view body, MediaType type) {
  v1::Call call;
  DROVER_CHECK_OK(decode_body(body, type, call));
  return call;
}

tl::expected<void, Response> read_message(const Request& request, Message& call) {
  const auto refuse = [](int status, std::string text) {
    return tl::unexpected(text_response(status, std::move(text)));
  };
  if (request.method != "POST") {
    auto response = text_response(
        405, "405 Method Not Allowed. Expecting one of { 'POST' }, but received '" + request.method + "'.");
    response.headers.emplace_back("Allow", "POST");
    return tl::unexpected(std::move(response));
  }
  if (request.content_type.empty()) return refuse(400, "Expecting 'Content-Type' to be present");
  const auto type = media_type(request.content_type);
  if (!type) return refuse(415, "Expecting 'Content-Type' of application/json or application/x-protobuf");
  if (const auto read = decode_body(request.body, *type, call); !read)
    return refuse(400, read.error().message);
  return {};
}

tl::expected<v1::Call, Response> read_call(const Request& request) {
  v1::Call call;
  if (auto read = read_message(request, call); !read) return tl::unexpected(std::move(read.error()));
  if (const auto valid = validate_call(call); !valid)
    return tl::unexpected(text_response(400, "Failed to validate scheduler::Call: " + valid.error().message));
  return call;
}

tl::expected<MediaType, Response> answer_type(const Request& request) {
  const auto header = request.headers.find("accept");
  if (const auto type = accepted_type(header == request.headers.end() ? "" : header->second)) return *type;
  return tl::unexpected(
      text_response(406, "Expecting 'Accept' to allow 'application/x-protobuf' or 'application/json'"));
}

Response message_response(const Message& message, MediaType type) {
  Response response;
  response.content_type = std::string(to_string(type));
  response.body = bytes_of(message, type);
  return response;
}

std::string event_record(const Message& event, MediaType type) {
  return encode_record(bytes_of(event, type));
}

}  // namespace drover::api::mesos
