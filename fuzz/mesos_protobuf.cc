#include "api/mesos/call.h"
#include "api/mesos/protobuf_json.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  namespace mesos = api::mesos;
  const auto call = mesos::decode_call(fuzz::text_of(data, size), mesos::MediaType::kProtobuf);
  if (!call) return 0;
  (void)mesos::validate_call(*call);
  fuzz::require(!mesos::to_json(*call).empty());
  fuzz::require(mesos::decode_call(call->SerializeAsString(), mesos::MediaType::kProtobuf).has_value());
  return 0;
}
