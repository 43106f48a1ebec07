#pragma once

// Starts child processes: argument vectors only, never a shell. A child inherits nothing but what is given
// here. Thread safe.

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace drover {

struct Pipe {
  UniqueFd read, write;
};

/// Closed in children. With `lowest`, both ends are out of the way of the descriptors below it, at which a
/// child finds its own.
Result<Pipe> make_pipe(int lowest = 0);

/// The same file at a descriptor from `lowest` on.
Result<UniqueFd> moved_up(int fd, int lowest);

/// The descriptors of a child, done in the order of the calls. What is ours and is given to it must not have
/// a number at which another was put before.
class ChildDescriptors {
 public:
  ChildDescriptors() { ::posix_spawn_file_actions_init(&actions_); }
  ~ChildDescriptors() { ::posix_spawn_file_actions_destroy(&actions_); }
  ChildDescriptors(const ChildDescriptors&) = delete;
  ChildDescriptors& operator=(const ChildDescriptors&) = delete;

  void give(int ours, int theirs);
  /// For reading and writing.
  void open(const std::string& path, int theirs);
  /// Those from this one on, whether they would close by themselves or not.
  void close_from(int first);
  /// All but the standard streams and `kept` (-1: nothing), which is given as descriptor 3. The last call.
  void close_others(int kept);

  const posix_spawn_file_actions_t& actions() const { return actions_; }
  /// The first that went wrong: 0, or a value of errno.
  int error() const { return error_; }

 private:
  void note(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  int error_ = 0;
};

/// Pipes as the standard streams of a child, which gets nothing else but `kept` (-1: nothing), as
/// descriptor 3.
struct StandardPipes {
  Pipe input, output, errors;
};
Result<StandardPipes> give_standard_pipes(ChildDescriptors& descriptors, int kept = -1);

struct Child {
  std::string program;                             ///< a path
  std::vector<std::string> arguments;              ///< from [0] on
  std::map<std::string, std::string> environment;  ///< the whole of it
  bool own_session = true;
  sigset_t blocked = [] {
    sigset_t none;
    ::sigemptyset(&none);
    return none;
  }();  ///< signals; what this process does with any of them is not inherited
};

struct Spawned {
  pid_t pid = 0;     ///< of a child of this process, which waits for it
  UniqueFd process;  ///< pidfd
};

/// A child that cannot be watched is ended at once.
Result<Spawned> spawn(const Child& child, const ChildDescriptors& descriptors);

}  // namespace drover
