#pragma once

// Runs health and readiness checks: HTTP, HTTPS, TCP, and commands inside of the task's container. It
// is handed a set of targets and tells each result; what follows from them is not its business. Thousands of
// targets cost a timer each, and no thread. All calls and all results are on the thread that runs the
// io_context.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/user_limits.h"
#include "workload/service.h"

namespace boost::asio {
class io_context;
}

namespace drover::engine {

struct CheckTarget {
  std::string task_id;
  uid_t owner = 0;                 ///< of the task
  std::string check;               ///< which one of the task's, in the words of who asks: unique for the task
  std::string host = "127.0.0.1";  ///< an address
  int port = 0;                    ///< of the machine; not used by commands
  TimePoint started_at{};          ///< of the task: the delay of a health check counts from here
  std::variant<workload::HealthCheck, workload::ReadinessCheck> what;

  bool operator==(const CheckTarget&) const = default;
};

/// What a server said to a readiness check.
struct CheckResponse {
  int status = 0;
  std::string content_type;
  std::string body;  ///< its head, 64 KiB at most
};

struct CheckResult {
  std::string task_id;
  std::string check;
  bool passed = false;
  std::string why;                        ///< one sentence, also when it passed
  std::optional<CheckResponse> response;  ///< of a readiness check that was answered
  /// Of the command, or of HTTP; of a connection 1, and 0 where there is none. None: no answer.
  std::optional<int> status = std::nullopt;
};

struct CheckPorts {
  std::function<void(const CheckResult&)> result;
  /// Runs a command in a task's container and gives its exit status, and the end of its output in the Error
  /// of kTimeout or another. Must not block; `done` may be called from any thread, and is called once. What
  /// runs longer than `timeout` is killed with all its children.
  struct CommandOutcome {
    int exit_status = 0;
    std::string output;
  };
  std::function<void(const std::string& task_id, const std::vector<std::string>& command,
                     std::chrono::milliseconds timeout, std::function<void(Result<CommandOutcome>)> done)>
      run_command;
  std::function<TimePoint()> now;
};

/// A server is well that answers with 200 to 399 (Marathon's rule). Redirects are not followed, and
/// certificates are not verified: what is asked is whether it answers.
class Checks {
 public:
  /// Of one user so many commands run at once; those of others find room beside them.
  Checks(boost::asio::io_context& context, CheckPorts ports,
         std::size_t commands_of_user = UserLimits{}.command_checks);
  ~Checks();
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  /// From now on exactly these checks are made of the task. A target that was there before goes on
  /// undisturbed; one that is gone, or has changed, gives no result any more.
  void set(const std::string& task_id, std::vector<CheckTarget> targets);
  std::size_t size() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drover::engine
