#include "api/mesos/executor_call.h"
#include "api/mesos/protobuf_json.h"
#include "fuzz.h"

/// What was read, in either language, is written so that it is read as the same again.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  namespace mesos = api::mesos;
  api::Request request;
  request.method = "POST";
  for (const auto* type : {"application/json", "application/x-protobuf"}) {
    request.body = fuzz::text_of(data, size);
    request.content_type = type;
    const auto call = mesos::read_executor_call(request);
    if (!call) continue;
    request.content_type = "application/json";
    request.body = mesos::to_json(*call);
    const auto again = mesos::read_executor_call(request);
    fuzz::require(again && mesos::to_json(*again) == request.body);
  }
  return 0;
}
