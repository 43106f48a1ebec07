#pragma once

// One task, or those of a gang or an array, in the foreground: their output is ours, their end is ours, and
// Ctrl-C is for them. A terminal that is gone ends the following and not the task. Lines of several begin
// with the rank, or the number in the array: "[3] loss 0.2".

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/client.h"
#include "cli/follow.h"
#include "cli/status_line.h"

namespace drover::cli {

/// Cuts the output of one member into lines and names the member before each of them. Pure.
class RankedLines {
 public:
  explicit RankedLines(int rank);

  /// The lines that are complete now, each with its end.
  std::string take(std::string_view bytes);
  /// What is left when nothing follows, as a line of its own.
  std::string rest();

 private:
  std::string prefix_;
  std::string line_;
};

/// Which tasks are in the foreground.
struct Followed {
  std::string whole;              ///< the id by which all are meant: a task's, a gang's or an array's
  std::string name = "the task";  ///< what they are called: or "the gang", "the array"
  std::vector<std::string> ids;   ///< of the tasks; not empty
  std::vector<int> ranks;         ///< by which each is called
};
/// Records of the API, of what was submitted together; not empty.
Followed followed(const std::vector<nlohmann::json>& records);

class Foreground {
 public:
  /// Their standard output goes to `output`.
  Foreground(Client client, Followed followed, int output, FollowOptions options = {});

  const std::string& first() const { return followed_.ids.front(); }

  /// Calls it with each state of the first of them, on the thread of follow().
  void on_state(std::function<void(const nlohmann::json& record)> listener);

  /// Returns the records when all have ended, in the same order; nothing when somebody ended the following.
  Result<std::vector<nlohmann::json>> follow();

  /// The first asks, the second kills. SIGHUP ends this process: the task goes on. For the thread of
  /// Interrupts.
  void interrupt(int signal);
  void stop(bool force);

  int last_signal() const { return last_signal_; }
  bool output_is_closed() const { return output_is_closed_; }
  /// The terminal that the output went to is gone.
  bool line_is_lost() const { return line_is_lost_; }
  /// How to hear of the task again: "the task goes on; 'drover logs -f ID' shows its output".
  std::string way_back() const;

 private:
  Result<nlohmann::json> follow_one(std::size_t rank);
  bool write(std::string_view stream, std::string_view bytes);
  void report_state(const nlohmann::json& record);
  void report_once(const std::string& words);
  void report_place(const nlohmann::json& record);
  void advise(const nlohmann::json& explanation);
  /// Above the line that tells how it stands.
  void say(std::string_view words);

  Client client_;
  Followed followed_;
  FollowOptions options_;
  std::function<void(const nlohmann::json&)> state_listener_;
  int output_descriptor_;
  bool output_is_terminal_, errors_are_terminal_;
  std::atomic<int> last_signal_ = 0;
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> output_is_closed_ = false;
  std::atomic<bool> line_is_lost_ = false;
  std::mutex output_;  ///< lines of several members do not mix
  StatusLine status_;  ///< with `output_`
  std::string last_words_;
  int place_ = 0;  ///< in the queue, as it was told last
  std::chrono::steady_clock::time_point asked_place_;
  bool advised_ = false;
};

/// What the process exits with once all have ended; says what the tasks themselves could not.
int judge_end(const std::vector<nlohmann::json>& records, int signal);

}  // namespace drover::cli
