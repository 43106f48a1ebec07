#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>

namespace drover::cli {

namespace {

termios usual;  // written before `is_raw` is
std::atomic<bool> is_raw = false;

}  // namespace

RawTerminal::RawTerminal() {
  if (::tcgetattr(STDIN_FILENO, &usual) != 0) return;
  auto raw = usual;
  ::cfmakeraw(&raw);
  changed_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  is_raw = changed_;
}

RawTerminal::~RawTerminal() {
  if (changed_) set_terminal_back();
}

void set_terminal_back() {
  if (is_raw.exchange(false)) ::tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

nlohmann::json terminal_size() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return {{"rows", 24}, {"columns", 80}};
  return {{"rows", size.ws_row}, {"columns", size.ws_col}};
}

}  // namespace drover::cli
