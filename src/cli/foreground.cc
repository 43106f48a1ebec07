#include "cli/foreground.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/habits.h"
#include "cli/missing_command.h"
#include "cli/terminal.h"
#include "cli/use_words.h"

namespace drover::cli {

using nlohmann::json;

namespace {

/// A line that is longer is cut: a program that never ends its line must not be held back for ever.
constexpr std::size_t kLongestLine = 64 * 1024;
/// Why a task waits is long to find out for the daemon: on a terminal its place is asked for so often at
/// most.
constexpr std::chrono::seconds kPlaceAsked{10};

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
  return fmt::format("if '{}' is an image: drover run --image {} …", word, word);
}

}  // namespace

RankedLines::RankedLines(int rank) : prefix_(fmt::format("[{}] ", rank)) {}

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

Followed followed(const std::vector<json>& records) {
  Followed tasks;
  for (const auto& record : records) {
    const auto& task = record.at("task");
    tasks.ids.push_back(task.value("id", ""));
    const auto gang = task.value("gang", json::object()), array = task.value("array", json::object());
    const bool is_one_of_several = records.size() > 1;
    tasks.whole =
        is_one_of_several ? gang.value("id", array.value("id", tasks.ids.front())) : tasks.ids.front();
    tasks.ranks.push_back(gang.value("rank", array.value("index", static_cast<int>(tasks.ranks.size()))));
    if (is_one_of_several) tasks.name = array.empty() ? "the gang" : "the array";
  }
  return tasks;
}

Foreground::Foreground(Client client, Followed followed, int output, FollowOptions options)
    : client_(std::move(client)),
      followed_(std::move(followed)),
      options_(std::move(options)),
      output_descriptor_(output),
      output_is_terminal_(::isatty(output) == 1),
      errors_are_terminal_(::isatty(STDERR_FILENO) == 1),
      status_(STDERR_FILENO) {}

void Foreground::on_state(std::function<void(const json&)> listener) {
  state_listener_ = std::move(listener);
}

Result<std::vector<json>> Foreground::follow() {
  std::vector<Result<json>> ends(followed_.ids.size());
  std::vector<std::thread> others;
  for (std::size_t rank = 1; rank < followed_.ids.size(); ++rank)
    others.emplace_back([this, rank, &ends] { ends[rank] = follow_one(rank); });
  ends[0] = follow_one(0);
  for (auto& thread : others) thread.join();
  status_.clear();
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
    if (followed_.ids.size() == 1) return write(stream, bytes);
    auto& cut = lines.try_emplace(std::string(stream), followed_.ranks[rank]).first->second;
    return write(stream, cut.take(bytes));
  };
  // What one member waits for, all wait for.
  handlers.state = [&](const json& record) {
    if (rank != 0) return;
    report_state(record);
    if (state_listener_) state_listener_(record);
  };
  handlers.tell = [this](std::string_view words) { say(words); };
  handlers.give_up = [this] { return given_up_ || output_is_closed_; };
  auto options = options_;
  options.quiet = rank != 0;
  auto end = follow_task(client_, followed_.ids[rank], options, handlers);
  for (auto& [stream, rest] : lines) write(stream, rest.rest());
  return end;
}

std::string Foreground::way_back() const {
  return fmt::format("{} goes on; 'drover logs -f {}' shows its output", followed_.name, followed_.whole);
}

void Foreground::interrupt(int signal) {
  if (signal == SIGHUP) {
    // Whoever writes may be stuck in it, with the lock.
    if (const std::unique_lock lock(output_, std::try_to_lock); lock) status_.clear();
    set_terminal_back();
    report(way_back());
    std::_Exit(128 + SIGHUP);
  }
  const bool force = last_signal_.exchange(signal) != 0;
  say(force ? fmt::format("killing {}", followed_.name)
            : fmt::format("asking {} to stop; once more kills it", followed_.name));
  stop(force);
}

void Foreground::stop(bool force) {
  const auto stopped = client_.post(task_target(followed_.whole, "/stop"), {{"force", force}});
  if (stopped || stopped.error().kind == ErrorKind::kConflict) return;
  report_error(stopped.error());
  if (force) given_up_ = true;
}

bool Foreground::write(std::string_view stream, std::string_view bytes) {
  if (bytes.empty()) return !output_is_closed_;
  const std::lock_guard lock(output_);
  status_.clear();
  const int fd = stream == "stderr" ? STDERR_FILENO : output_descriptor_;
  if (!write_all(fd, bytes, std::string(stream))) {
    line_is_lost_ = fd == STDERR_FILENO ? errors_are_terminal_ : output_is_terminal_;
    output_is_closed_ = true;
  }
  return !output_is_closed_;
}

void Foreground::say(std::string_view words) {
  const std::lock_guard lock(output_);
  status_.clear();
  report(words);
}

void Foreground::report_state(const json& record) {
  const auto state = record.value("state", "");
  const bool preempted = record.value("preempted", false);
  if (state == "queued" && !preempted && !std::exchange(advised_, true)) {
    // What would help changes with everything that others do, and takes the daemon long to find: once is
    // enough.
    if (!status_.on_terminal()) report_once("waiting: " + record.value("reason", ""));
    const auto explained = client_.get(task_target(first(), "/explain"));
    if (explained) advise(*explained);
  }
  if (status_.on_terminal() && !preempted) return report_place(record);
  report_once(preempted           ? "ended to make room for other work; it will start again"
              : state == "queued" ? "waiting: " + record.value("reason", "")
                                  : "");
}

/// On a terminal: its id, and how far it has come.
void Foreground::report_place(const json& record) {
  const auto now = std::chrono::steady_clock::now();
  if (record.value("state", "") == "queued" && now - asked_place_ > kPlaceAsked) {
    asked_place_ = now;
    if (const auto explained = client_.get(task_target(first(), "/explain")))
      place_ = explained->value("place", 0);
  }
  const auto words = progress_words(record, place_);
  const std::lock_guard lock(output_);
  status_.show(words.empty() ? "" : fmt::format("drover: {}: {}", first(), words));
}

void Foreground::advise(const json& explanation) {
  place_ = explanation.value("place", 0);
  asked_place_ = std::chrono::steady_clock::now();
  if (explanation.value("state", "") != "queued") return;
  const auto remedies = explanation.value("remedies", std::vector<std::string>());
  if (!remedies.empty()) say(fmt::format("what helps: {}", fmt::join(remedies, "; ")));
}

void Foreground::report_once(const std::string& words) {
  if (words == std::exchange(last_words_, words)) return;
  if (!words.empty()) say(words);
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
  const auto who = alone ? "the task" : fmt::format("rank {}", followed(records).ranks[decides]);
  if (!reason.empty() && !said_by_status) {
    const auto nearby = missing_command_hint(record);
    report_error({ErrorKind::kUnavailable, fmt::format("{} {}: {}", who, verb, reason),
                  nearby.empty() ? image_hint(record) : nearby, ""});
  }
  if (const auto advice = advice_of(record); alone && !advice.empty()) report(advice);
  if (has_status) return status->get<int>();
  return signal != 0 ? 128 + signal : kNotRun;
}

}  // namespace drover::cli
