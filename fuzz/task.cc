#include "workload/task.h"

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto body = parse_json(fuzz::text_of(data, size), "It");
  if (!body) return 0;
  const auto submission = workload::decode_submission(*body);
  if (!submission) {
    fuzz::require(!submission.error().message.empty());
    return 0;
  }
  const auto* const request = std::get_if<workload::TaskRequest>(&*submission);
  if (request == nullptr) return 0;
  const auto stored = workload::decode_task(workload::encode(request->task));
  fuzz::require(stored && *stored == request->task);
  return 0;
}
