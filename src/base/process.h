#pragma once

// Child processes: argument vectors only, never a shell. The child inherits nothing but what is given here.
// Thread safe. Blocks: call it from a pool, not from the control strand.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover {

struct Command {
  std::vector<std::string> arguments;              ///< [0] is the program, looked up in PATH
  std::map<std::string, std::string> environment;  ///< the whole environment of the child
  std::string input;                               ///< written to its standard input
  std::chrono::milliseconds timeout{60'000};       ///< then SIGKILL, and ErrorKind::kTimeout
  std::uint64_t output_limit = 1ULL << 20;         ///< of each stream; more is read and dropped
};

struct Completed {
  int exit_status = 0;  ///< 128 + n when signal n ended it
  std::string output;
  std::string errors;
};

/// Runs to the end. An exit status other than 0 is not an Error: the caller knows what it means.
Result<Completed> run_command(const Command& command);

/// PATH, HOME and LANG=C.UTF-8 of this process: what a well-behaved tool needs.
std::map<std::string, std::string> minimal_environment();

/// As many open files as the packaged unit allows, where that may be: a shell allows 1024, and each follower
/// of a live answer holds one. And memory may be locked without limit, where that may be, which tasks
/// inherit: what they lock counts as theirs all the same, and RDMA locks much.
void raise_limits();

/// The full path of a program in PATH (or of a path with a slash), if it can be run.
Result<std::string> find_program(const std::string& name);

}  // namespace drover
