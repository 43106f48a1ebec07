#include <nlohmann/json.hpp>

#include "api/mesos/call.h"
#include "api/mesos/protobuf_json.h"
#include "fuzz.h"

/// What was read is written so that it is read as the same again.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  namespace mesos = api::mesos;
  const auto call = mesos::decode_call(fuzz::text_of(data, size), mesos::MediaType::kJson);
  if (!call) return 0;
  (void)mesos::validate_call(*call);
  const auto text = mesos::to_json(*call);
  const auto again = mesos::decode_call(text, mesos::MediaType::kJson);
  fuzz::require(again && mesos::to_json(*again) == text);
  return 0;
}
