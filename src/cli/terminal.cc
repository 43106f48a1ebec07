#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace drover::cli {

RawTerminal::RawTerminal() {
  if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  auto raw = before_;
  ::cfmakeraw(&raw);
  changed_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

RawTerminal::~RawTerminal() {
  if (changed_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

nlohmann::json terminal_size() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return {{"rows", 24}, {"columns", 80}};
  return {{"rows", size.ws_row}, {"columns", size.ws_col}};
}

}  // namespace drover::cli
