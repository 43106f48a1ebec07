#include "kube/dra/status_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/client/object.h"

namespace drover::kube::dra {

using nlohmann::json;

StatusWriter::StatusWriter(StatusWriterOptions options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void StatusWriter::prepared(const ClaimReference& claim) {
  const std::scoped_lock lock(mutex_);
  auto& entry =
      claims_.try_emplace(claim.uid, claim, Clock::now(), Backoff(options_.retry, options_.patience))
          .first->second;
  entry.claim = claim;
  entry.due = Clock::now();
  entry.pauses.reset();
  changed_.notify_all();
}

void StatusWriter::unprepared(const std::string& uid) {
  const std::scoped_lock lock(mutex_);
  const auto found = claims_.find(uid);
  if (found == claims_.end()) return;
  found->second.due = Clock::now();
  found->second.pauses.reset();
  changed_.notify_all();
}

/// The claim that is due, when there is one; from then on it is not.
std::optional<ClaimReference> StatusWriter::next(std::unique_lock<std::mutex>& lock,
                                                 const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto first = claims_.end();
    for (auto each = claims_.begin(); each != claims_.end(); ++each)
      if (each->second.due && (first == claims_.end() || *each->second.due < *first->second.due))
        first = each;
    if (first == claims_.end()) {
      changed_.wait(lock, stop, [&] {
        return std::ranges::any_of(claims_, [](const auto& each) { return each.second.due.has_value(); });
      });
      continue;
    }
    if (const auto due = *first->second.due; due > Clock::now()) {
      // Somebody may come before it.
      changed_.wait_until(lock, stop, due, [&] {
        return std::ranges::any_of(
            claims_, [&](const auto& each) { return each.second.due && *each.second.due < due; });
      });
      continue;
    }
    first->second.due.reset();
    return first->second.claim;
  }
  return std::nullopt;
}

void StatusWriter::run(const std::stop_token& stop) {
  for (;;) {
    bool was_written = false;
    std::optional<ClaimReference> claim;
    {
      std::unique_lock lock(mutex_);
      claim = next(lock, stop);
      if (!claim) return;
      was_written = claims_.at(claim->uid).written;
    }
    const auto entries = options_.entries(claim->uid);
    // Of whole GPUs nothing is told, and the API server not asked.
    const bool is_empty = entries.empty();
    done(*claim, is_empty && !was_written ? Status() : write(*claim, entries), is_empty);
  }
}

void StatusWriter::done(const ClaimReference& claim, const Status& written, bool is_empty) {
  if (written && !is_empty) told_.reset();
  if (!written && std::exchange(told_, written.error().kind) != written.error().kind && options_.warn)
    options_.warn(to_string(context(
        written.error(), fmt::format("the status of the claim {} does not tell what keeps its pods to their "
                                     "shares, nor may others'",
                                     to_string(claim)))));
  const std::scoped_lock lock(mutex_);
  const auto found = claims_.find(claim.uid);
  auto& entry = found->second;
  if (!written) {
    const auto pause = entry.pauses.next();
    if (!entry.due) entry.due = Clock::now() + pause;  // unless there is news
  } else if (is_empty && !entry.due) {
    claims_.erase(found);
    return;
  }
  entry.written = entry.written || !is_empty;
}

/// Nothing is to be told of a claim that is gone, nor of one that is allocated to nobody: the API server
/// drops entries with the devices.
Status StatusWriter::write(const ClaimReference& claim, const json& entries) const {
  const auto is_gone = [](const Error& error) { return error.kind == ErrorKind::kNotFound; };
  const auto object = options_.source->claim(claim.namespace_name, claim.name);
  if (!object) return is_gone(object.error()) ? Status() : Failure(object.error());
  if (text_at(*object, "/metadata/uid") != claim.uid || !object->contains("/status/allocation"_json_pointer))
    return {};
  const auto status = status_change(*object, entries, options_.owner, wall_clock());
  if (!status) return {};
  const auto applied = options_.source->apply_status(claim, *status, status_manager(options_.owner));
  if (!applied) return is_gone(applied.error()) ? Status() : Failure(applied.error());
  if (!entries.empty() && status_change(*applied, entries, options_.owner, wall_clock()))
    return fail(ErrorKind::kUnsupported, "the API server keeps nothing in the status of claims' devices",
                "its feature gate DRAResourceClaimDeviceStatus is on from Kubernetes 1.33 on");
  return {};
}

}  // namespace drover::kube::dra
