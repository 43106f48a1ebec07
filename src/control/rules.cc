#include "control/rules.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/units.h"

namespace drover::control {
namespace {

using nlohmann::json;
using placement::Limits;
using placement::Quota;
using placement::Subject;
using placement::SubjectKind;

constexpr double kMostUnits = 1e6;  ///< GPUs or CPUs of a limit
constexpr std::int64_t kMostBytes = 1LL << 62;
constexpr int kMostWeight = 1'000'000;

double units(std::int64_t milli) {
  return static_cast<double>(milli) / 1000;
}

std::optional<std::int64_t> decode_milli(Decoder& decoder, const std::string& name) {
  const auto amount = decoder.number(name, 0, kMostUnits);
  if (!amount) return std::nullopt;
  const auto milli = std::round(*amount * 1000);
  if (std::abs(*amount * 1000 - milli) < 1e-6 && (milli > 0 || *amount == 0))
    return static_cast<std::int64_t>(milli);
  decoder.mistake(name, fmt::format("{} is finer than a thousandth", decoder.value(name)->dump()),
                  "round it to three decimals");
  return std::nullopt;
}

std::optional<std::uint64_t> decode_memory(Decoder& decoder, const json& value) {
  const auto field = value.find("memory");
  if (field == value.end()) return std::nullopt;
  if (field->is_number()) {
    const auto bytes = decoder.integer("memory", 0, kMostBytes);
    return bytes ? std::optional(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
  }
  const auto text = decoder.string("memory");
  if (!text) return std::nullopt;
  const auto bytes = parse_bytes(*text);
  if (bytes) return *bytes;
  decoder.mistake("memory", bytes.error().message, bytes.error().hint);
  return std::nullopt;
}

Limits decode_limits(Decoder& outer, const json& value, const std::string& name) {
  Limits limits;
  auto decoder = outer.object(name);
  if (!decoder) return limits;
  limits.gpu_milli = decode_milli(*decoder, "gpus");
  limits.milli_cpus = decode_milli(*decoder, "cpus");
  limits.memory_bytes = decode_memory(*decoder, value.at(name));
  decoder->finish();
  return limits;
}

Subject decode_subject(Decoder& decoder) {
  const auto user = decoder.string("user");
  const auto name_space = decoder.string("namespace");
  if (user && name_space)
    decoder.mistake("namespace", "a quota is of a user or of a namespace, not of both", "set two quotas");
  else if (!user && !name_space)
    decoder.mistake("user", "missing: whose quota is it?", "name a 'user' or a 'namespace'");
  return user ? Subject{SubjectKind::kUser, *user}
              : Subject{SubjectKind::kNamespace, name_space.value_or("")};
}

/// Fields of the API's own making, so what is unknown is wrong.
template <typename T, typename Read>
Result<T> decode_whole(const json& value, const char* what, Read read) {
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  T result = read(decoder);
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, what));
  return result;
}

}  // namespace

json encode(const Limits& limits) {
  json value = json::object();
  if (limits.gpu_milli) value["gpus"] = units(*limits.gpu_milli);
  if (limits.milli_cpus) value["cpus"] = units(*limits.milli_cpus);
  if (limits.memory_bytes) value["memory"] = *limits.memory_bytes;
  return value;
}

json encode(const placement::Queue& queue) {
  json value = {{"queue", queue.path},
                {"limit", encode(queue.limit)},
                {"guarantee", encode(queue.guarantee)},
                {"weight", queue.weight},
                {"users", queue.users}};
  if (queue.most.timeout) value["timeout"] = exact_duration(*queue.most.timeout);
  if (queue.most.idle_timeout) value["idle_timeout"] = exact_duration(*queue.most.idle_timeout);
  return value;
}

Result<placement::Queue> decode_queue(const json& value) {
  return decode_whole<placement::Queue>(value, "The queue", [&](Decoder& decoder) {
    placement::Queue queue;
    queue.path = decoder.string("queue").value_or("");
    if (queue.path.empty()) decoder.mistake("queue", "missing: the queue's path");
    queue.limit = decode_limits(decoder, value, "limit");
    queue.guarantee = decode_limits(decoder, value, "guarantee");
    queue.weight = static_cast<int>(decoder.integer("weight", 1, kMostWeight).value_or(1));
    queue.users = decoder.string_list("users").value_or(std::vector<std::string>{});
    queue.most = {decoder.duration("timeout"), decoder.duration("idle_timeout")};
    if (queue.most.timeout && queue.most.timeout->count() == 0)
      decoder.mistake("timeout", "a timeout is longer than nothing");
    if (queue.most.idle_timeout && *queue.most.idle_timeout < workload::kShortestIdleTimeout)
      decoder.mistake("idle_timeout",
                      fmt::format("{} is the least", exact_duration(workload::kShortestIdleTimeout)));
    return queue;
  });
}

json encode(const Quota& quota) {
  json value = {{quota.subject.kind == SubjectKind::kUser ? "user" : "namespace", quota.subject.name},
                {"limit", encode(quota.limit)}};
  if (quota.max_priority) value["max_priority"] = *quota.max_priority;
  return value;
}

Result<Quota> decode_quota(const json& value) {
  return decode_whole<Quota>(value, "The quota", [&](Decoder& decoder) {
    Quota quota;
    quota.subject = decode_subject(decoder);
    quota.limit = decode_limits(decoder, value, "limit");
    if (const auto priority =
            decoder.integer("max_priority", workload::kMinPriority, workload::kMaxPriority)) {
      quota.max_priority = static_cast<int>(*priority);
      if (quota.subject.kind == SubjectKind::kNamespace)
        decoder.mistake("max_priority", "only a user's quota has a highest priority");
    }
    return quota;
  });
}

json encode(const std::string& gpu, const placement::Cordon& cordon) {
  json value = {{"by", cordon.by}, {"reason", cordon.reason}};
  if (gpu != placement::kWholeMachine) value["gpu"] = gpu;
  return value;
}

json encode(const placement::Rules& rules) {
  json value = {{"queues", json::array()}, {"quotas", json::array()}};
  for (const auto& [path, queue] : rules.queues) value["queues"].push_back(encode(queue));
  for (const auto& [subject, quota] : rules.quotas) value["quotas"].push_back(encode(quota));
  for (const auto& [gpu, cordon] : rules.cordons) value["cordons"].push_back(encode(gpu, cordon));
  return value;
}

Result<placement::Rules> decode_rules(const json& value) {
  placement::Rules rules;
  for (const auto& one : value.value("queues", json::array())) {
    DROVER_TRY(auto queue, decode_queue(one));
    rules.queues[queue.path] = std::move(queue);
  }
  for (const auto& one : value.value("quotas", json::array())) {
    DROVER_TRY(auto quota, decode_quota(one));
    rules.quotas[quota.subject] = std::move(quota);
  }
  for (const auto& one : value.value("cordons", json::array())) {
    std::vector<Error> mistakes;
    Decoder decoder(one, mistakes);
    const auto gpu = decoder.string("gpu").value_or(std::string(placement::kWholeMachine));
    rules.cordons[gpu] = {decoder.string("by").value_or(""), decoder.string("reason").value_or("")};
    if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A cordon"));
  }
  return rules;
}

}  // namespace drover::control
