#pragma once

// How long work is thought to run, by how long work like it has run: the same user's, of the same name and
// the same size, as far as there was any. A value, of which a copy takes no time (base/shared_map.h). Pure.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/shared_map.h"
#include "placement/gang.h"

namespace drover::placement {

class RunTimes {
 public:
  struct Kind {
    std::string user;
    std::string name;
    std::string size;  ///< size_of() it
    bool operator==(const Kind&) const = default;
  };
  /// Of so many containers alike.
  static std::string size_of(std::size_t members, const Request& request);

  void add(const Kind& kind, std::chrono::milliseconds time);
  /// Of what was added before.
  void remove(const Kind& kind, std::chrono::milliseconds time);

  /// The mean of its kind, of which few values weigh little against the mean of the user's work of that size,
  /// and that against the mean of all of the user's. None of a user of whom nothing has run.
  ///
  /// The mean, and not the median: to go by the mean is what lets work complete soonest on average when more
  /// is not known (Rothkopf, Management Science 12, 1966), and times differ by orders of magnitude.
  std::optional<std::chrono::milliseconds> expected(const Kind& kind) const;

  bool empty() const { return sums_.empty(); }
  bool operator==(const RunTimes&) const = default;

 private:
  struct Sum {
    std::int64_t count = 0;
    std::int64_t milliseconds = 0;
    bool operator==(const Sum&) const = default;
  };
  void change(const Kind& kind, std::int64_t count, std::int64_t milliseconds);

  SharedMap<std::string, Sum> sums_;
};

}  // namespace drover::placement
