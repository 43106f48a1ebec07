#include "kube/events/event_recorder.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/shorten.h"

namespace drover::kube {
namespace {

using nlohmann::json;

const Resource kEvents = {"", "v1", "events"};
constexpr std::size_t kLongestMessage = 1024;  // the server refuses longer ones
constexpr std::size_t kLongestPrefix = 200;
constexpr std::chrono::milliseconds kUntilAsked{20};

std::string namespace_of(const EventTarget& target) {
  return target.name_space.empty() ? "default" : target.name_space;
}

json event_of(const EventWrite& write, const EventSource& source) {
  const auto& [target, text, count, first, last, name] = write;
  const bool is_node = target.kind == "Node" && target.uid.empty();
  json object = {{"apiVersion", target.api_version},
                 {"kind", target.kind},
                 {"name", target.name},
                 {"uid", is_node ? target.name : target.uid}};
  if (!target.name_space.empty()) object["namespace"] = target.name_space;
  return {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"generateName", target.name.substr(0, kLongestPrefix) + "."}, {"namespace", namespace_of(target)}}},
      {"involvedObject", object},
      {"type", text.warning ? "Warning" : "Normal"},
      {"reason", text.reason},
      {"message", shortened(text.message, kLongestMessage - 8)},
      {"count", count},
      {"firstTimestamp", format_time(first)},
      {"lastTimestamp", format_time(last)},
      {"source", {{"component", source.component}, {"host", source.host}}},
      {"reportingComponent", source.component},
      {"reportingInstance", source.host}};
}

/// A server that is away or has too much to do, as opposed to one that says no.
bool may_pass(const Error& error) {
  return error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout ||
         error.kind == ErrorKind::kExhausted;
}

}  // namespace

EventRecorder::EventRecorder(Api& api, EventSource source, std::function<void(const Error&)> on_trouble,
                             EventLimits limits, StandBack stand_back)
    : api_(api),
      source_(std::move(source)),
      on_trouble_(std::move(on_trouble)),
      stand_back_(std::move(stand_back)),
      book_(limits),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::record(const EventTarget& target, const EventText& text) {
  const std::lock_guard lock(mutex_);
  book_.add(target, text, wall_clock());
  if (!std::exchange(added_, true)) changed_.notify_all();
}

void EventRecorder::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (book_.due() && is_to_wait()) {
      changed_.wait_for(lock, stop, kUntilAsked, [] { return false; });
      continue;
    }
    if (const auto next = book_.next(wall_clock())) {
      lock.unlock();
      waits_since_.reset();
      const auto name = write(*next, stop);
      lock.lock();
      if (name)
        book_.wrote(*next, *name, wall_clock());
      else
        book_.failed(*next, may_pass(name.error()), wall_clock());
      continue;
    }
    added_ = false;
    const auto is_added = [this] { return added_; };
    if (const auto due = book_.due())
      changed_.wait_until(lock, stop, *due, is_added);
    else
      changed_.wait(lock, stop, is_added);
  }
}

bool EventRecorder::is_to_wait() {
  if (!stand_back_.is_busy || !stand_back_.is_busy()) {
    waits_since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!waits_since_) waits_since_ = now;
  return now - *waits_since_ < stand_back_.between;
}

Result<std::string> EventRecorder::write(const EventWrite& write, const std::stop_token& stop) {
  auto name = make(write, stop);
  if (!name && on_trouble_ && trouble_ != name.error().message) on_trouble_(name.error());
  trouble_ = name ? "" : name.error().message;
  return name;
}

Result<std::string> EventRecorder::make(const EventWrite& write, const std::stop_token& stop) {
  if (!write.name.empty()) {
    const json seen = {{"count", write.count}, {"lastTimestamp", format_time(write.last)}};
    const auto patched = api_.send({.verb = "patch",
                                    .path = {kEvents, namespace_of(write.target), write.name},
                                    .content_type = "application/merge-patch+json",
                                    .body = seen.dump()},
                                   stop);
    if (patched) return write.name;
    if (patched.error().kind != ErrorKind::kNotFound) return Failure(patched.error());
  }  // servers forget Events after an hour
  DROVER_TRY(const auto made, api_.send({.verb = "create",
                                         .path = {kEvents, namespace_of(write.target)},
                                         .content_type = "application/json",
                                         .body = to_text(event_of(write, source_))},
                                        stop));
  return text_at(made, "/metadata/name");
}

}  // namespace drover::kube
