#pragma once

// The terminal that people sit at.

#include <nlohmann/json_fwd.hpp>

namespace drover::cli {

/// Standard input passes every key on, until this dies; nothing when it is no terminal. One at a time.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  bool changed_ = false;
};

/// What RawTerminal has changed, before the process ends at once. May be called by any thread.
void set_terminal_back();

/// {"rows": 24, "columns": 80} of standard input; these where it has no size.
nlohmann::json terminal_size();

}  // namespace drover::cli
