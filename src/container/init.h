#pragma once

// drover-init, the first process of every container (src/init): its arguments, and what it reports. It enters
// the working folder with the task's rights, which a runtime does with root's. Thread safe but for
// InitReport.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::container {

/// Where it is in every container: in the container's own /dev, into which no image and no volume reaches.
inline constexpr const char* kInitInside = "/dev/drover-init";
/// Where the filter of system calls is in a container of an OCI runtime: see seccomp_filter.h.
inline constexpr const char* kFilterInside = "/dev/drover-seccomp";
/// The descriptor that it reports to: the first after the standard streams.
inline constexpr int kReportDescriptor = 3;

/// Its exit status when it is given nothing to do.
inline constexpr int kInitUsageStatus = 2;

/// Writes the program below the state folder unless it is there, and returns its path.
Result<std::string> place_init(const std::string& state);

/// What the command reads from.
enum class InitInput {
  kNone,      ///< /dev/null of the container
  kGiven,     ///< what the init was given
  kTerminal,  ///< the same, and it is the terminal of the command's session
};

/// The argument vector of a container's first process.
std::vector<std::string> init_arguments(const std::string& folder, const std::vector<std::string>& command,
                                        InitInput input = InitInput::kNone);
/// The same for an engine, which has no descriptor to give: it reports to standard error. Further commands
/// can be held in it.
std::vector<std::string> engine_init_arguments(const std::string& folder,
                                               const std::vector<std::string>& command);
/// Of a further process in the container whose first process has these: the init becomes the command, with
/// the same filter and working folder. nullopt for a container that an earlier version started without an
/// init. `held`: it is stopped before it becomes the command, until SIGCONT; for those that can_hold().
std::optional<std::vector<std::string>> direct_arguments(const std::vector<std::string>& first,
                                                         const std::vector<std::string>& command,
                                                         bool held = false);
/// Whether the container's init knows how to hold a further command; those of earlier versions do not.
bool can_hold(const std::vector<std::string>& first);

/// What an init has said so far. Its container can write what it likes: nothing but numbers is taken from it.
class InitReport {
 public:
  InitReport(std::string folder, std::string command)
      : folder_(std::move(folder)), command_(std::move(command)) {}

  void append(std::string_view text);
  /// Whether the command was started.
  bool running() const { return running_; }
  /// Why it could not be started.
  const std::optional<Error>& failure() const { return failure_; }
  /// The signal that ended the command.
  std::optional<int> signal() const { return signal_; }

 private:
  void take(std::string_view line);

  std::string folder_, command_;
  std::string unread_;
  bool running_ = false;
  std::optional<Error> failure_;
  std::optional<int> signal_;
};

}  // namespace drover::container
