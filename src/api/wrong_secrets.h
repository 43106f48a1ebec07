#pragma once

// Who shows wrong secrets over TCP, for the log: a line at the first of an address, and then at most one a
// minute that says how many there were. Keeps little, whoever tries. Pure but for what it counts; not thread
// safe.

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace drover::api {

class WrongSecrets {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Counts one of this address; the line, when one is due.
  std::optional<std::string> note(const std::string& address, Time now);

 private:
  struct Tries {
    Time reported_at;
    std::size_t unreported = 0;
  };
  std::map<std::string, Tries> tries_;
};

}  // namespace drover::api
