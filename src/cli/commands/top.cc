// `drover top`: what the GPUs do, and for whom, as it changes.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/top/console.h"
#include "cli/top/frame.h"
#include "cli/top/watcher.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kEscapePause{50};  // a key that sends several bytes sends them sooner
constexpr std::chrono::seconds kPatienceOfTop{5};      // then people are told that there is no answer
constexpr int kUsualColumns = 80;
constexpr int kMostColumns = 1000;
constexpr int kOfSignals = 128;

struct TopOptions {
  bool once = false;
  bool json = false;
  bool here = false;
  std::string interval = "1s";
};

top::Source source_of(const Context& context, bool here) {
  auto endpoint = context.endpoint;
  if (endpoint.patience.count() == 0 || endpoint.patience > kPatienceOfTop)
    endpoint.patience = kPatienceOfTop;
  const bool of_this_machine = endpoint.url.empty();
  const bool unsaid =
      of_this_machine && !context.endpoint_said && !endpoint.trouble && endpoint.socket == kDefaultSocket;
  using Whom = top::Source::Whom;
  const auto whom = here ? Whom::kHere : (unsaid ? Whom::kEither : Whom::kDaemon);
  return {Client(std::move(endpoint)), of_this_machine, context.hooks->gpus_here, whom};
}

top::Surroundings surroundings_of(const top::Snapshot& snapshot) {
  auto machine = machine_words(snapshot);
  if (!snapshot.of_daemon) machine += (machine.empty() ? "" : ", ") + std::string("without a daemon");
  const auto time = format_time(snapshot.at);  // 2026-11-23T10:00:00.000Z
  return {.machine = std::move(machine), .clock = time.size() >= 19 ? time.substr(11, 8) + "Z" : time};
}

int columns_of_environment() {
  const char* text = std::getenv("COLUMNS");
  const auto number = text == nullptr ? std::nullopt : whole_number(text);
  return number && *number > 0 ? static_cast<int>(std::min<std::int64_t>(*number, kMostColumns))
                               : kUsualColumns;
}

Result<int> look_once(const Context& context, const TopOptions& options) {
  auto source = source_of(context, options.here);
  DROVER_TRY(auto snapshot, source.look());
  if (options.json) {
    auto all = std::move(snapshot.gpus);
    all["at"] = format_time(snapshot.at);
    all["daemon"] = snapshot.of_daemon;
    all["tasks"] = std::move(snapshot.tasks);
    all["queues"] = std::move(snapshot.queues);
    print_json(all);
    return 0;
  }
  top::Histories histories;
  histories.add(snapshot.gpus);
  print(top::draw_once(panels_of(snapshot, histories), surroundings_of(snapshot), columns_of_environment(),
                       top::locale_is_utf8())
            .plain());
  return 0;
}

/// Somebody at a terminal.
class Sitting {
 public:
  Sitting(const Context& context, bool here, std::chrono::milliseconds interval)
      : watcher_(source_of(context, here), interval, [this] { console_.call(); }) {
    view_.interval = interval;
    around_.trouble = "Looking ...";
  }

  int sit() {
    draw();
    for (;;) {
      const auto happened = console_.wait(reader_.waits() ? std::optional(kEscapePause) : std::nullopt);
      if (happened.ended_by != 0) return kOfSignals + happened.ended_by;
      if (happened.suspended) suspend();
      if (happened.resized) shown_.reset();
      if (happened.called) take_news();
      const auto keys =
          happened.typed.empty()
              ? (reader_.waits() && !happened.called ? reader_.flush() : std::vector<top::Key>())
              : reader_.feed(happened.typed);
      for (const auto& key : keys)
        if (take(key)) return 0;
      if (!draw()) return kOfSignals + SIGHUP;
    }
  }

  bool close() { return watcher_.close(); }

 private:
  void suspend() {
    console_.suspend();
    shown_.reset();
  }

  void take_news() {
    auto news = watcher_.take();
    if (news.trouble) around_.trouble = *news.trouble;
    if (news.message) view_.message = std::move(*news.message);
    if (!news.snapshot) return;
    histories_.add(news.snapshot->gpus);
    panels_ = panels_of(*news.snapshot, histories_);
    around_ = surroundings_of(*news.snapshot);
  }

  /// Whether he wants to go.
  bool take(const top::Key& key) {
    const auto size = top::Console::size();
    const auto wish = take_key(view_, panels_, key, size.width, size.height);
    using Kind = top::Wish::Kind;
    if (wish.kind == Kind::kQuit) return true;
    if (wish.kind == Kind::kSuspend) suspend();
    if (wish.kind == Kind::kRedraw) shown_.reset();
    if (wish.kind == Kind::kStop) {
      view_.message = fmt::format("Asking task {} to end ...", wish.task);
      watcher_.stop(wish.task, wish.force);
    }
    watcher_.set(view_.interval, view_.paused);
    settle(view_, panels_, size.height);
    return false;
  }

  bool draw() {
    const auto size = top::Console::size();
    settle(view_, panels_, size.height);
    auto screen = top::draw(view_, panels_, around_, size.width, size.height, unicode_);
    const bool good = console_.show(changes(shown_ ? &*shown_ : nullptr, screen, colours_));
    shown_ = std::move(screen);
    return good;
  }

  const bool unicode_ = top::locale_is_utf8();
  const bool colours_ = colours(STDOUT_FILENO);
  top::Console console_;  ///< before the watcher's thread: it blocks signals
  top::Watcher watcher_;
  top::KeyReader reader_;
  top::View view_;
  top::Histories histories_;
  top::Panels panels_;
  top::Surroundings around_;
  std::optional<top::Screen> shown_;
};

Result<int> show_top(Context& context, const TopOptions& options) {
  DROVER_TRY(const auto interval, of_flag(parse_duration(options.interval), "--interval"));
  if (interval < top::kShortest || interval > top::kLongestInterval)
    return bad_value("--interval", options.interval, "a time from 200ms to 1m",
                     "write for example --interval 2s");
  if (context.endpoint.trouble && !options.here) return Failure(*context.endpoint.trouble);
  if (options.once || options.json || !top::is_at_terminal()) return look_once(context, options);
  std::optional<Sitting> sitting(std::in_place, context, options.here, interval);
  const int status = sitting->sit();
  const bool over = sitting->close();
  sitting.reset();
  if (!over) ::_exit(status);  // a thread waits for a daemon that does not answer
  return status;
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  auto options = std::make_shared<TopOptions>();
  auto* command = app.add_subcommand("top", "Watch the GPUs, their processes, the tasks and the queue");
  command->add_flag("--once", options->once,
                    "Print it once, as wide as COLUMNS says; without a terminal it is");
  command->add_flag("--json", options->json, "The same as JSON");
  command->add_flag("--here", options->here, "Ask this machine's driver, and no daemon");
  add_text(*command, "--interval", options->interval, "TIME", "How long after a look the next one comes: 2s")
      ->default_str(options->interval);
  on_call(command, context, options, show_top);
}

}  // namespace drover::cli
