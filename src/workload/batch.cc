#include "workload/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/instant.h"
#include "base/json_writer.h"

namespace drover::workload {
namespace {

/// Of the same number: EndedHow, Requeue.
constexpr std::array<std::string_view, 3> kEndedHow = {"ok", "failed", "any"};
constexpr std::array<std::string_view, 3> kRequeue = {"never", "preempted", "lost"};

constexpr const char* kArrayExample = "write for example 0-99, 1,3,7-9, 0-30:10 or 0-99%10";

Failure not_an_array(std::string_view text, const std::string& why) {
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is no array: {}", text, why), kArrayExample);
}

std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

struct Range {
  int first = 0, last = 0, step = 1;

  std::int64_t size() const { return (last - first) / step + 1; }
};

/// "7", "0-99", "0-30:10"
std::optional<Range> parse_range(std::string_view text) {
  const auto dash = text.find('-');
  const auto colon = dash == text.npos ? text.npos : text.find(':', dash);
  const auto first = parse_number(text.substr(0, dash));
  if (!first) return std::nullopt;
  if (dash == text.npos) return Range{*first, *first, 1};
  const auto last = parse_number(text.substr(dash + 1, colon == text.npos ? colon : colon - dash - 1));
  const auto step = colon == text.npos ? std::optional(1) : parse_number(text.substr(colon + 1));
  if (!last || !step || *step == 0 || *last < *first) return std::nullopt;
  return Range{*first, *last, *step};
}

void decode_begin(Decoder& decoder, Batch& batch, std::optional<std::chrono::milliseconds>& begin_in) {
  const auto text = decoder.string("begin");
  if (!text) return;
  if (const auto duration = parse_duration(*text))
    begin_in = *duration;
  else if (const auto time = parse_instant(*text))
    batch.begin = *time;
  else
    decoder.mistake("begin", fmt::format("'{}' is neither a time nor a duration", *text),
                    "write for example 2026-11-27T18:00:00Z, or 2h");
}

std::optional<ArrayMembership> decode_array_membership(Decoder& decoder) {
  auto fields = decoder.object("array");
  if (!fields) return std::nullopt;
  ArrayMembership array;
  array.id = fields->string("id").value_or("");
  array.index = static_cast<int>(fields->integer("index", 0, kMaxArrayIndex).value_or(0));
  array.size = static_cast<int>(fields->integer("size", 1, kMaxArray).value_or(1));
  array.at_once = static_cast<int>(fields->integer("at_once", 0, kMaxArray).value_or(0));
  return array;
}

}  // namespace

std::string_view to_string(Requeue policy) {
  return kRequeue.at(static_cast<std::size_t>(policy));
}

std::string_view to_string(EndedHow how) {
  return kEndedHow.at(static_cast<std::size_t>(how));
}

Dependency parse_dependency(std::string_view text) {
  for (std::size_t i = 0; i < kEndedHow.size(); ++i)
    if (const auto suffix = fmt::format(":{}", kEndedHow[i]); text.ends_with(suffix))
      return {std::string(text.substr(0, text.size() - suffix.size())), static_cast<EndedHow>(i)};
  return {std::string(text)};
}

std::chrono::milliseconds retry_delay(int failures) {
  constexpr int kDoublings = 6;  // then it is longer than the longest
  const auto delay = kFirstRetryDelay * (1 << std::clamp(failures - 1, 0, kDoublings));
  return std::min<std::chrono::milliseconds>(delay, kLongestRetryDelay);
}

Result<ArrayIndices> parse_array(std::string_view text) {
  ArrayIndices array;
  const auto percent = text.find('%');
  if (percent != text.npos) {
    const auto at_once = parse_number(text.substr(percent + 1));
    if (!at_once || *at_once == 0) return not_an_array(text, "behind '%' stands how many run at a time");
    array.at_once = std::min(*at_once, kMaxArray);
  }
  const auto list = text.substr(0, percent);
  std::int64_t size = 0;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto range = parse_range(list.substr(begin, end - begin));
    if (!range) return not_an_array(text, fmt::format("'{}' is no range", list.substr(begin, end - begin)));
    if (range->last > kMaxArrayIndex)
      return not_an_array(text, fmt::format("the highest number is {}", kMaxArrayIndex));
    size += range->size();
    if (size > kMaxArray)
      return fail(ErrorKind::kInvalid, fmt::format("An array has {} tasks at most, not {}", kMaxArray, size),
                  "submit several, each after the one before: --after");
    for (int index = range->first; index <= range->last; index += range->step) array.indices.push_back(index);
    begin = end + 1;
  }
  std::ranges::sort(array.indices);
  if (const auto twice = std::ranges::adjacent_find(array.indices); twice != array.indices.end())
    return not_an_array(text, fmt::format("{} stands there twice", *twice));
  return array;
}

void decode_batch(Decoder& decoder, Batch& batch, std::optional<std::chrono::milliseconds>& begin_in) {
  for (const auto& text : decoder.strings("after").value_or(std::vector<std::string>{}))
    batch.after.push_back(parse_dependency(text));
  if (batch.after.size() > kMostDependencies)
    decoder.mistake("after", fmt::format("a task comes after {} others at most", kMostDependencies));
  decode_begin(decoder, batch, begin_in);
  batch.retries = static_cast<int>(decoder.integer("retries", 0, kMostRetries).value_or(0));
  if (const auto policy = decoder.choice("requeue", kRequeue)) batch.requeue = static_cast<Requeue>(*policy);
  batch.idle_timeout = decoder.duration("idle_timeout");
  if (batch.idle_timeout && *batch.idle_timeout < kShortestIdleTimeout)
    decoder.mistake("idle_timeout", fmt::format("GPUs are looked at every few seconds, so {} is the least",
                                                exact_duration(kShortestIdleTimeout)));
}

void write(JsonWriter& writer, std::string_view name, const std::vector<Dependency>& dependencies) {
  if (dependencies.empty()) return;
  writer.key(name);
  writer.begin_array();
  for (const auto& dependency : dependencies) {
    writer.begin_object();
    writer.field("end", to_string(dependency.how));
    writer.field("task", dependency.job);
    writer.end_object();
  }
  writer.end_array();
}

void write(JsonWriter& writer, const ArrayMembership& array) {
  writer.begin_object();
  writer.field("at_once", array.at_once);
  writer.field("id", array.id);
  writer.field("index", array.index);
  writer.field("size", array.size);
  writer.end_object();
}

std::vector<Dependency> decode_stored_dependencies(Decoder& decoder, const std::string& name) {
  std::vector<Dependency> dependencies;
  for (auto& fields : decoder.objects(name)) {
    Dependency dependency;
    dependency.job = fields.string("task").value_or("");
    if (const auto how = fields.choice("end", kEndedHow)) dependency.how = static_cast<EndedHow>(*how);
    dependencies.push_back(std::move(dependency));
  }
  return dependencies;
}

Batch decode_stored_batch(Decoder& decoder) {
  Batch batch;
  batch.after = decode_stored_dependencies(decoder, "after");
  batch.array = decode_array_membership(decoder);
  if (const auto text = decoder.string("begin")) {
    if (const auto time = parse_time(*text))
      batch.begin = *time;
    else
      decoder.mistake("begin", time.error().message);
  }
  if (const auto policy = decoder.choice("requeue", kRequeue)) batch.requeue = static_cast<Requeue>(*policy);
  batch.retries = static_cast<int>(decoder.integer("retries", 0, kMostRetries).value_or(0));
  if (const auto timeout = decoder.integer("idle_timeout_ms", 0, 1LL << 53))
    batch.idle_timeout = std::chrono::milliseconds(*timeout);
  return batch;
}

}  // namespace drover::workload
