#pragma once

// The first half of every call: from an HTTP request to a message that is whole and, of schedulers, makes
// sense in itself, or the very answer that Mesos gives to one that is not. And how messages are answered.
// Pure.

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "api/http.h"
#include "api/mesos/media_type.h"
#include "api/mesos/protocol.h"

namespace drover::api::mesos {

/// `text` as it is, as text/plain.
Response text_response(int status, std::string text);

/// Reads the body of a POST into `call`, in the language that its `Content-Type` names. The body of 400
/// answers is the message of the error, for clients read it.
tl::expected<void, Response> read_message(const Request& request, google::protobuf::Message& call);

tl::expected<v1::Call, Response> read_call(const Request& request);

/// What read_call() does to a body, for its own tests and fuzzing: an error in the words of Mesos.
Result<v1::Call> decode_call(std::string_view body, MediaType type);
/// Whether a decoded call has what its type needs.
Status validate_call(const v1::Call& call);

/// How the answer is written, or the 406.
tl::expected<MediaType, Response> answer_type(const Request& request);
Response message_response(const google::protobuf::Message& message, MediaType type);

/// One event as a record of RecordIO.
std::string event_record(const google::protobuf::Message& event, MediaType type);

}  // namespace drover::api::mesos
