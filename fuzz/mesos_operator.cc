#include "api/mesos/call.h"
#include "api/mesos/operator_protocol.h"
#include "api/mesos/protobuf_json.h"
#include "fuzz.h"

namespace {

/// What was read, in either language, is written so that it is read as the same again.
template <typename Call>
void read(std::string body, const char* type) {
  using namespace drover;
  namespace mesos = api::mesos;
  api::Request request;
  request.method = "POST";
  request.content_type = type;
  request.body = std::move(body);
  Call call;
  if (!mesos::read_message(request, call)) return;
  request.content_type = "application/json";
  request.body = mesos::to_json(call);
  Call again;
  fuzz::require(mesos::read_message(request, again) && mesos::to_json(again) == request.body);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace v1 = drover::api::mesos::v1;
  const std::string body(drover::fuzz::text_of(data, size));
  for (const auto* type : {"application/json", "application/x-protobuf"}) {
    read<v1::master::Call>(body, type);
    read<v1::agent::Call>(body, type);
  }
  return 0;
}
