#pragma once

// The terminal that people sit at. Not thread safe.

#include <termios.h>

#include <nlohmann/json_fwd.hpp>

namespace drover::cli {

/// Standard input passes every key on, until this dies; nothing when it is no terminal.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

/// {"rows": 24, "columns": 80} of standard input; these where it has no size.
nlohmann::json terminal_size();

}  // namespace drover::cli
