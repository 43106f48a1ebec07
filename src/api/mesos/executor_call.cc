#include "api/mesos/executor_call.h"

#include "api/mesos/values.h"

namespace drover::api::mesos {
namespace {

using ExecutorCall = v1::executor::Call;

Status has_part(bool has, const std::string& name) {
  if (has) return {};
  return invalid("Expecting '" + name + "' to be present");
}

Status validate_status(const ExecutorCall& call, const v1::TaskStatus& status) {
  constexpr std::size_t kBytesOfUuid = 16;
  DROVER_CHECK_OK(has_part(status.has_uuid(), "uuid"));
  if (status.uuid().size() != kBytesOfUuid) return invalid("Not a valid UUID");
  if (status.has_executor_id() && status.executor_id().value() != call.executor_id().value())
    return invalid("ExecutorID in Call: " + call.executor_id().value() +
                   " does not match ExecutorID in TaskStatus: " + status.executor_id().value());
  if (status.source() != v1::TaskStatus::SOURCE_EXECUTOR)
    return invalid("Received Call from executor " + call.executor_id().value() +
                   " with invalid source, expecting 'SOURCE_EXECUTOR'");
  if (status.state() == v1::TASK_STAGING)
    return invalid("Received TASK_STAGING from executor " + call.executor_id().value() +
                   " which is not allowed");
  return {};
}

}  // namespace

Status validate_call(const ExecutorCall& call) {
  DROVER_CHECK_OK(has_part(call.has_type(), "type"));
  switch (call.type()) {
    case ExecutorCall::SUBSCRIBE:
      DROVER_CHECK_OK(has_part(call.has_subscribe(), "subscribe"));
      for (const auto& update : call.subscribe().unacknowledged_updates())
        DROVER_CHECK_OK(validate_status(call, update.status()));
      return {};
    case ExecutorCall::UPDATE:
      DROVER_CHECK_OK(has_part(call.has_update(), "update"));
      return validate_status(call, call.update().status());
    case ExecutorCall::MESSAGE:
      return has_part(call.has_message(), "message");
    default:
      return {};
  }
}

tl::expected<ExecutorCall, Response> read_executor_call(const Request& request) {
  ExecutorCall call;
  if (auto read = read_message(request, call); !read) return tl::unexpected(std::move(read.error()));
  if (const auto valid = validate_call(call); !valid)
    return tl::unexpected(text_response(400, "Failed to validate executor::Call: " + valid.error().message));
  return call;
}

}  // namespace drover::api::mesos
