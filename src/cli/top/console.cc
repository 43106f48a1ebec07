#include "cli/top/console.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/files.h"

namespace drover::cli::top {
namespace {

// Another screen, no cursor, no wrapping at the edge, presses of the mouse in SGR form.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l\033[?1000h\033[?1006h";
constexpr std::string_view kLeave = "\033[0m\033[?1006l\033[?1000l\033[?7h\033[?25h\033[?1049l";
// Terminals that know it show what is between at once.
constexpr std::string_view kBegin = "\033[?2026h", kEnd = "\033[?2026l";
constexpr int kMostCells = 1000;

sigset_t caught_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) sigaddset(&set, number);
  return set;
}

}  // namespace

Console::Console() {
  const auto set = caught_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  calls_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  enter();
}

Console::~Console() {
  leave();
}

void Console::enter() {
  raw_.emplace();
  write_all(STDOUT_FILENO, kEnter, "the terminal");
}

void Console::leave() {
  write_all(STDOUT_FILENO, kLeave, "the terminal");
  raw_.reset();
}

void Console::suspend() {
  leave();
  ::raise(SIGSTOP);
  enter();
}

Console::Size Console::size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {std::min<int>(size.ws_col, kMostCells), std::min<int>(size.ws_row, kMostCells)};
}

void Console::call() const {
  ::eventfd_write(calls_.get(), 1);
}

bool Console::show(std::string_view changes) {
  if (changes.empty()) return true;
  return write_all(STDOUT_FILENO, std::string(kBegin).append(changes).append(kEnd), "the terminal")
      .has_value();
}

Console::Happened Console::wait(std::optional<std::chrono::milliseconds> most) {
  std::array<pollfd, 3> waits = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                 pollfd{calls_.get(), POLLIN, 0}};
  Happened happened;
  if (::poll(waits.data(), waits.size(), most ? static_cast<int>(most->count()) : -1) <= 0) return happened;
  if (waits[0].revents != 0) {
    std::array<char, 512> bytes{};
    const auto count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0)
      happened.ended_by = SIGHUP;
    else
      happened.typed.assign(bytes.data(), static_cast<std::size_t>(count));
  }
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGTSTP)
      happened.suspended = true;
    else if (number == SIGWINCH)
      happened.resized = true;
    else
      happened.ended_by = number;
  }
  eventfd_t count = 0;
  happened.called = ::eventfd_read(calls_.get(), &count) == 0;
  return happened;
}

bool is_at_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != '\0' &&
         std::string_view(kind) != "dumb";
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace drover::cli::top
