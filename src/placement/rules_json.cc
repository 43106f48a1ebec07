#include "placement/rules_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/decode.h"
#include "base/units.h"

namespace drover::placement {
namespace {

using nlohmann::json;

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

const char* kind_word(SubjectKind kind) {
  return kind == SubjectKind::kUser ? "user" : "namespace";
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
template <typename Decode>
auto read_whole(const json& value, Decode decode) -> Read<decltype(decode(std::declval<Decoder&>()))> {
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  auto result = decode(decoder);
  decoder.finish();
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return result;
}

template <typename T>
Result<T> as_one(Read<T> read, const char* what) {
  if (!read) return Failure(join_mistakes(read.error(), what));
  return std::move(*read);
}

}  // namespace

json encode(const Limits& limits) {
  json value = json::object();
  if (limits.gpu_milli) value["gpus"] = units(*limits.gpu_milli);
  if (limits.milli_cpus) value["cpus"] = units(*limits.milli_cpus);
  if (limits.memory_bytes) value["memory"] = *limits.memory_bytes;
  return value;
}

json encode(const Queue& queue) {
  json value = {{"queue", queue.path},
                {"limit", encode(queue.limit)},
                {"guarantee", encode(queue.guarantee)},
                {"weight", queue.weight},
                {"users", queue.users}};
  if (queue.most.timeout) value["timeout"] = exact_duration(*queue.most.timeout);
  if (queue.most.idle_timeout) value["idle_timeout"] = exact_duration(*queue.most.idle_timeout);
  return value;
}

Read<Queue> read_queue(const json& value) {
  return read_whole(value, [&](Decoder& decoder) {
    Queue queue;
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
  json value = {{kind_word(quota.subject.kind), quota.subject.name}, {"limit", encode(quota.limit)}};
  if (quota.max_priority) value["max_priority"] = *quota.max_priority;
  return value;
}

Result<Queue> decode_queue(const json& value) {
  return as_one(read_queue(value), "The queue");
}

Read<Quota> read_quota(const json& value) {
  return read_whole(value, [&](Decoder& decoder) {
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

Result<Quota> decode_quota(const json& value) {
  return as_one(read_quota(value), "The quota");
}

json encode(const std::string& gpu, const Cordon& cordon) {
  json value = {{"by", cordon.by}, {"reason", cordon.reason}};
  if (gpu != kWholeMachine) value["gpu"] = gpu;
  return value;
}

json encode(const Rules& rules) {
  json value = {{"queues", json::array()}, {"quotas", json::array()}};
  for (const auto& [path, queue] : rules.queues) value["queues"].push_back(encode(queue));
  for (const auto& [subject, quota] : rules.quotas) value["quotas"].push_back(encode(quota));
  for (const auto& [gpu, cordon] : rules.cordons) value["cordons"].push_back(encode(gpu, cordon));
  return value;
}

Result<Rules> decode_rules(const json& value) {
  Rules rules;
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
    const auto gpu = decoder.string("gpu").value_or(std::string(kWholeMachine));
    rules.cordons[gpu] = {decoder.string("by").value_or(""), decoder.string("reason").value_or("")};
    if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A cordon"));
  }
  return rules;
}

std::string to_string(const Subject& subject) {
  return fmt::format("{}:{}", kind_word(subject.kind), subject.name);
}

RulePath rule_path(const std::string& path) {
  RulePath result;
  const auto field = path.find('/', path.find('/', 1) + 1);
  result.rule = path.substr(0, field);
  if (field != std::string::npos) result.field = path.substr(field);
  for (const auto& [ours, theirs] :
       {std::pair("/gpu_milli", "/gpus"), {"/milli_cpus", "/cpus"}, {"/memory_bytes", "/memory"}})
    if (result.field.ends_with(ours))
      result.field.replace(result.field.rfind(ours), std::string::npos, theirs);
  return result;
}

}  // namespace drover::placement
