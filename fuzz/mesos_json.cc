#include <nlohmann/json.hpp>

#include "api/mesos/call.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/task_info.h"
#include "fuzz.h"

namespace {

/// A task that is taken can be kept: all of it is text.
void launch(const drover::api::mesos::v1::Call& call) {
  using namespace drover;
  const api::mesos::LaunchContext context{"F", "S0", {{"root", User{}}}, "root", 0, "root"};
  for (const auto& operation : call.accept().operations())
    for (const auto& info : operation.launch().task_infos()) {
      const auto task = api::mesos::read_task(info, context, false);
      if (task) fuzz::require(!workload::encode(*task).dump().empty());
      if (task) (void)api::mesos::read_health_check(info, *task);
      if (task) (void)api::mesos::read_check(info, *task);
    }
}

}  // namespace

/// What was read is written so that it is read as the same again.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  namespace mesos = api::mesos;
  const auto call = mesos::decode_call(fuzz::text_of(data, size), mesos::MediaType::kJson);
  if (!call) return 0;
  (void)mesos::validate_call(*call);
  launch(*call);
  const auto text = mesos::to_json(*call);
  const auto again = mesos::decode_call(text, mesos::MediaType::kJson);
  fuzz::require(again && mesos::to_json(*again) == text);
  return 0;
}
