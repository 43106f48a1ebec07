#include "cli/foreground.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/habits.h"

namespace drover::cli {

using nlohmann::json;

namespace {

/// A line that is longer is cut: a program that never ends its line must not be held back for ever.
constexpr std::size_t kLongestLine = 64 * 1024;

/// The record of the member by whose end the gang is judged: the one that failed first by itself, else the
/// first.
std::size_t deciding_member(const std::vector<json>& records) {
  const auto rank_of_end = [](const json& record) {
    const bool failed = record.value("state", "") != "finished";
    const bool dragged = !record.value("gang_reason", "").empty();
    return std::tuple(!failed, dragged, record.value("finished_at", ""));
  };
  std::size_t decides = 0;
  for (std::size_t i = 1; i < records.size(); ++i)
    if (rank_of_end(records[i]) < rank_of_end(records[decides])) decides = i;
  return decides;
}

/// "drover run ubuntu bash": the first word of what was no command may be meant as an image.
std::string image_hint(const json& record) {
  const auto task = record.value("task", json::object());
  const auto command = task.value("command", json::array());
  if (task.contains("image") || command.empty() || !command.front().is_string()) return "";
  const auto word = command.front().get<std::string>();
  const auto none = fmt::format("There is no command '{}' in the container (check", word);
  if (!looks_like_image(word) || !record.value("reason", "").starts_with(none)) return "";
  return fmt::format("\n        if '{}' is an image: drover run --image {} …", word, word);
}

}  // namespace

RankedLines::RankedLines(std::size_t rank) : prefix_(fmt::format("[{}] ", rank)) {}

std::string RankedLines::take(std::string_view bytes) {
  std::string lines;
  for (const char c : bytes) {
    if (c != '\n') line_ += c;
    if (c == '\n' || line_.size() >= kLongestLine) lines += prefix_ + std::exchange(line_, "") + "\n";
  }
  return lines;
}

std::string RankedLines::rest() {
  return line_.empty() ? "" : prefix_ + std::exchange(line_, "") + "\n";
}

Foreground::Foreground(Client client, std::vector<std::string> ids, FollowOptions options)
    : client_(std::move(client)), ids_(std::move(ids)), options_(std::move(options)) {}

void Foreground::on_state(std::function<void(const json&)> listener) {
  state_listener_ = std::move(listener);
}

Result<std::vector<json>> Foreground::follow() {
  std::vector<Result<json>> ends(ids_.size());
  std::vector<std::thread> others;
  for (std::size_t rank = 1; rank < ids_.size(); ++rank)
    others.emplace_back([this, rank, &ends] { ends[rank] = follow_one(rank); });
  ends[0] = follow_one(0);
  for (auto& thread : others) thread.join();
  std::vector<json> records;
  for (auto& end : ends) {
    if (!end) return Failure(end.error());
    if (end->is_null()) return std::vector<json>();
    records.push_back(std::move(*end));
  }
  return records;
}

Result<json> Foreground::follow_one(std::size_t rank) {
  std::map<std::string, RankedLines, std::less<>> lines;
  FollowHandlers handlers;
  handlers.output = [&](std::string_view stream, std::string_view bytes) {
    if (ids_.size() == 1) return write(stream, bytes);
    return write(stream, lines.try_emplace(std::string(stream), rank).first->second.take(bytes));
  };
  // What one member waits for, all wait for.
  handlers.state = [&](const json& record) {
    if (rank != 0) return;
    report_state(record);
    if (state_listener_) state_listener_(record);
  };
  handlers.give_up = [this] { return given_up_ || output_is_closed_; };
  auto options = options_;
  options.quiet = rank != 0;
  auto end = follow_task(client_, ids_[rank], options, handlers);
  for (auto& [stream, rest] : lines) write(stream, rest.rest());
  return end;
}

void Foreground::interrupt(int signal) {
  const bool force = last_signal_.exchange(signal) != 0;
  const auto* what = ids_.size() == 1 ? "the task" : "the gang";
  report(force ? fmt::format("killing {}", what)
               : fmt::format("asking {} to stop; once more kills it", what));
  stop(force);
}

void Foreground::stop(bool force) {
  const auto stopped = client_.post(task_target(ids_.front(), "/stop"), {{"force", force}});
  if (stopped || stopped.error().kind == ErrorKind::kConflict) return;
  report_error(stopped.error());
  if (force) given_up_ = true;
}

bool Foreground::write(std::string_view stream, std::string_view bytes) {
  const std::lock_guard lock(output_);
  const int fd = stream == "stderr" ? STDERR_FILENO : STDOUT_FILENO;
  if (!write_all(fd, bytes, std::string(stream))) output_is_closed_ = true;
  return !output_is_closed_;
}

void Foreground::report_state(const json& record) {
  if (record.value("preempted", false))
    return report_once("ended to make room for other work; it will start again");
  if (record.value("state", "") != "queued") return report_once("");
  report_once("waiting: " + record.value("reason", ""));
  // What would help changes with everything that others do, and takes the daemon long to find: once is
  // enough.
  if (std::exchange(advised_, true)) return;
  const auto explained = client_.get(task_target(ids_.front(), "/explain"));
  if (!explained || explained->value("state", "") != "queued") return;
  const auto remedies = explained->value("remedies", std::vector<std::string>());
  if (!remedies.empty()) report(fmt::format("what helps: {}", fmt::join(remedies, "; ")));
}

void Foreground::report_once(const std::string& words) {
  if (words == std::exchange(last_words_, words)) return;
  if (!words.empty()) report(words);
}

int judge_end(const std::vector<json>& records, int signal) {
  const auto decides = deciding_member(records);
  const auto& record = records[decides];
  const bool alone = records.size() == 1;
  const auto status = record.find("exit_status");
  const auto state = record.value("state", "");
  const auto reason = record.value("reason", "");
  const bool has_status = status != record.end() && status->is_number_integer();
  const bool said_by_status = alone && has_status && reason.starts_with("exited with status");
  const auto verb = state == "failed" ? "failed" : "was " + state;
  const auto who = alone ? "the task" : fmt::format("rank {}", decides);
  if (!reason.empty() && !said_by_status) 
    report(fmt::format("{} {}: {}{}", who, verb, reason, image_hint(record)));
  if (has_status) return status->get<int>();
  return signal != 0 ? 128 + signal : kNotRun;
}

}  // namespace drover::cli
