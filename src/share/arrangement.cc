#include "share/arrangement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace drover::share {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostPercent = 100;
constexpr std::int64_t kMostMib = std::int64_t{1} << 40;

template <typename Value>
std::map<std::string, Value> read_numbers(Decoder& value, const std::string& name, std::int64_t most) {
  std::map<std::string, Value> numbers;
  const auto* found = value.value(name);
  if (found == nullptr) return numbers;
  if (!found->is_object()) {
    value.mistake(name, "must be an object");
    return numbers;
  }
  for (const auto& [key, number] : found->items()) {
    if (!number.is_number_integer() || number < 0 || number > most)
      value.mistake(name, "has something else than numbers, or one that is too large");
    else
      numbers[key] = static_cast<Value>(number.get<std::int64_t>());
  }
  return numbers;
}

}  // namespace

json json_of(const Arrangement& arrangement) {
  auto value = json::object();
  for (const auto& [gpu, interval] : arrangement.intervals)
    value["intervals"][gpu] = static_cast<int>(interval);
  if (const auto& mps = arrangement.mps) {
    auto& made = value["mps"] = {{"gpus", mps->gpus}};
    if (mps->threads) made["threads"] = *mps->threads;
    if (!mps->memory_mib.empty()) made["memoryMib"] = mps->memory_mib;
  }
  return value;
}

Arrangement read_arrangement(Decoder& value) {
  Arrangement arrangement;
  arrangement.intervals =
      read_numbers<Interval>(value, "intervals", static_cast<std::int64_t>(Interval::kLong));
  if (auto mps = value.object("mps")) {
    auto& limits = arrangement.mps.emplace();
    limits.gpus = mps->string_list("gpus").value_or(std::vector<std::string>());
    if (limits.gpus.empty()) mps->mistake("gpus", "there is none");
    if (const auto threads = mps->integer("threads", 1, kMostPercent))
      limits.threads = static_cast<int>(*threads);
    limits.memory_mib = read_numbers<std::uint64_t>(*mps, "memoryMib", kMostMib);
    mps->finish();
  }
  value.finish();
  return arrangement;
}

}  // namespace drover::share
