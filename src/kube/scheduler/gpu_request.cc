#include "kube/scheduler/gpu_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/decode.h"
#include "base/json_writer.h"
#include "workload/resource_fields.h"
#include "workload/task_writer.h"

namespace drover::kube::scheduler {
namespace {

constexpr std::array<std::string_view, 8> kFields = {
    "gpus",    "gpu_model",  "gpu_memory",       "gpu_compute_capability",
    "gpu_ecc", "gpu_driver", "different_models", "interconnect"};

}  // namespace

bool is_particular(const placement::Request& request) {
  const auto is_any = [](const auto& kind) { return kind.filter == placement::DeviceFilter(); };
  return request.different_models || request.interconnect.asks() ||
         !std::ranges::all_of(request.gpus, is_any);
}

std::string write_gpu_request(const placement::Request& request) {
  if (!is_particular(request)) return "";
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  if (request.different_models) writer.field("different_models", true);
  writer.key("gpus");
  workload::write_kinds(writer, request.gpus);
  if (request.interconnect.asks()) writer.field("interconnect", workload::to_string(request.interconnect));
  writer.end_object();
  return text;
}

Status add_gpu_request(std::string_view text, std::optional<int> gpus, placement::Request& request) {
  const auto what = fmt::format("the annotation '{}'", kGpuRequestAnnotation);
  DROVER_TRY(auto given, parse_json(text, what));
  if (!given.is_object()) return fail(ErrorKind::kInvalid, fmt::format("{} is no object", what));
  std::vector<Error> mistakes;
  for (const auto& [name, value] : given.items())
    if (std::ranges::find(kFields, name) == kFields.end())
      mistakes.push_back({ErrorKind::kInvalid, "it says nothing of GPUs that are asked for by number",
                          "leave it out", "/" + pointer_token(name)});
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, what));
  if (!given.contains("gpus")) given["gpus"] = gpus.value_or(1);
  Decoder decoder(given, mistakes);
  placement::Request read;
  workload::decode_resources(decoder, read);
  if (mistakes.empty() && !gpus && !read.share.whole())
    decoder.mistake("gpus", "it is no number of whole GPUs", "leave shares to a claim");
  else if (mistakes.empty() && gpus && (!read.share.whole() || read.gpu_count() != *gpus))
    decoder.mistake("gpus", fmt::format("it is not as many as the pod's limits say, which are {}", *gpus),
                    "leave the number to the limits");
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, what));
  request.gpus = std::move(read.gpus);
  request.different_models = read.different_models;
  request.interconnect = read.interconnect;
  return {};
}

}  // namespace drover::kube::scheduler
