#pragma once

// How a task's container ended, as a value: told by the container room, judged by the control room.

#include <string>

#include "base/units.h"

namespace drover::workload {

struct Ending {
  int exit_status = 0;  ///< 0..255; 128 + n when signal n ended it
  bool out_of_memory = false;
  bool stopped = false;  ///< somebody asked for it: stop() came first
  bool lost = false;     ///< nobody can say how it ended: its shim died
  std::string message;   ///< in words when it did not simply exit; "" otherwise
  TimePoint finished_at{};

  bool operator==(const Ending&) const = default;
};

}  // namespace drover::workload
