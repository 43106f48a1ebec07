#include "share/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_text.h"

namespace drover::share {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "drover-sharing";
constexpr int kVersion = 1;
constexpr std::size_t kLongestOwner = 96;

bool has_mps(const Arrangement& arrangement, const std::string& gpu) {
  return arrangement.mps && std::ranges::find(arrangement.mps->gpus, gpu) != arrangement.mps->gpus.end();
}

std::string_view name_of(Interval interval) {
  constexpr std::string_view kNames[] = {"Default", "Short", "Medium", "Long"};
  return kNames[static_cast<std::size_t>(interval)];
}

Status check_beside(const Arrangement& other, const Arrangement& wanted) {
  const auto conflict = [](const std::string& gpu, const std::string& why) {
    return fail(ErrorKind::kConflict, fmt::format("GPU {} {}", gpu, why),
                "it can be had when the other one's pods have ended");
  };
  for (const auto& [gpu, interval] : wanted.intervals) {
    if (has_mps(other, gpu)) return conflict(gpu, "is shared by MPS for somebody else");
    const auto found = other.intervals.find(gpu);
    if (found != other.intervals.end() && found->second != interval)
      return conflict(gpu, fmt::format("has time slices of the interval {} for somebody else, and cannot "
                                       "have those of {} at once",
                                       name_of(found->second), name_of(interval)));
  }
  if (!wanted.mps) return {};
  for (const auto& gpu : wanted.mps->gpus) {
    if (has_mps(other, gpu)) return conflict(gpu, "is shared by MPS for somebody else");
    if (other.intervals.contains(gpu)) return conflict(gpu, "is shared in turns of time by somebody else");
  }
  return {};
}

}  // namespace

std::string write_ledger(const Ledger& ledger) {
  auto owners = json::object();
  for (const auto& [owner, arrangement] : ledger.owners) owners[owner] = json_of(arrangement);
  auto gpus = json::object();
  for (const auto& [gpu, changed] : ledger.gpus) {
    auto& value = gpus[gpu] = json::object();
    if (changed.exclusive) value["exclusive"] = true;
    if (changed.interval) value["interval"] = true;
  }
  const json document{{"format", kFormat}, {"version", kVersion}, {"owners", owners}, {"gpus", gpus}};
  return to_text(document, 2) + "\n";
}

Result<Ledger> read_ledger(std::string_view text) {
  const auto corrupt = [](const Error& error) {
    return fail(ErrorKind::kCorrupt, "the record of shared GPUs cannot be read: " + error.message, "",
                error.path);
  };
  const auto document = parse_json(text, "record");
  if (!document) return corrupt(document.error());
  std::vector<Error> mistakes;
  Decoder root(*document, mistakes);
  Ledger ledger;
  if (root.string("format") != kFormat) root.mistake("format", "it is another program's");
  root.integer("version", kVersion, kVersion);
  if (const auto* owners = root.value("owners"); owners != nullptr && owners->is_object())
    for (const auto& [name, value] : owners->items()) {
      Decoder owner(value, mistakes, "/owners/" + pointer_token(name));
      if (!is_owner(name)) root.mistake("owners", "a name is none of an owner");
      ledger.owners[name] = read_arrangement(owner);
    }
  if (const auto* gpus = root.value("gpus"); gpus != nullptr && gpus->is_object())
    for (const auto& [name, value] : gpus->items()) {
      Decoder gpu(value, mistakes, "/gpus/" + pointer_token(name));
      auto& changed = ledger.gpus[name];
      changed.exclusive = gpu.boolean("exclusive").value_or(false);
      changed.interval = gpu.boolean("interval").value_or(false);
      gpu.finish();
    }
  root.finish();
  if (!mistakes.empty()) return corrupt(join_mistakes(mistakes, "record"));
  return ledger;
}

Status check_room(const Ledger& ledger, const std::string& owner, const Arrangement& wanted) {
  for (const auto& [name, other] : ledger.owners)
    if (name != owner) DROVER_CHECK_OK(check_beside(other, wanted));
  return {};
}

bool wants_mps(const Ledger& ledger, const std::string& gpu) {
  return std::ranges::any_of(ledger.owners, [&](const auto& owner) { return has_mps(owner.second, gpu); });
}

bool wants_interval(const Ledger& ledger, const std::string& gpu) {
  return std::ranges::any_of(ledger.owners, [&](const auto& owner) {
    const auto found = owner.second.intervals.find(gpu);
    return found != owner.second.intervals.end() && found->second != Interval::kDefault;
  });
}

bool is_owner(std::string_view name) {
  const auto letter = [](char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); };
  const auto plain = [&](char c) {
    return letter(c) || ('0' <= c && c <= '9') || c == '-' || c == '.' || c == '_';
  };
  return !name.empty() && letter(name.front()) && name.size() <= kLongestOwner &&
         std::ranges::all_of(name, plain);
}

}  // namespace drover::share
