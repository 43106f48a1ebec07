#pragma once

// Lets the calling thread open files with the rights of a user (see image/reader.h for what follows from it).
// File system identity and supplementary groups are per thread in the kernel; the file capabilities are off
// the thread meanwhile. Keep it to the one system call that it is for.

#include <sys/types.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/users.h"

namespace drover {

/// This thread acts as the user while this object lives. A thread that cannot become itself again must not
/// go on: it would do the daemon's work as somebody else.
class ActingAs {
 public:
  static Result<ActingAs> start(const User& user);
  ActingAs(ActingAs&& other) noexcept : groups_(std::exchange(other.groups_, std::nullopt)) {}
  ActingAs& operator=(ActingAs&&) = delete;
  ~ActingAs();

 private:
  explicit ActingAs(std::optional<std::vector<gid_t>> groups) : groups_(std::move(groups)) {}
  std::optional<std::vector<gid_t>> groups_;  ///< of the thread itself; nullopt when nothing was changed
};

}  // namespace drover
