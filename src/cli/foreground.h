#pragma once

// One task, or the members of a gang, in the foreground: their output is ours, their end is ours, and Ctrl-C
// is for them. A terminal that is gone ends the following and not the task. Lines of a gang begin with the
// rank: "[3] loss 0.2".

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
  explicit RankedLines(std::size_t rank);

  /// The lines that are complete now, each with its end.
  std::string take(std::string_view bytes);
  /// What is left when nothing follows, as a line of its own.
  std::string rest();

 private:
  std::string prefix_;
  std::string line_;
};

class Foreground {
 public:
  /// `ids` by rank; one is an ordinary task. Their standard output goes to `output`.
  Foreground(Client client, std::vector<std::string> ids, int output, FollowOptions options = {});

  /// Calls it with each state of the first of them, on the thread of follow().
  void on_state(std::function<void(const nlohmann::json& record)> listener);

  /// Returns the records when all have ended, by rank; nothing when somebody ended the following.
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
  std::vector<std::string> ids_;
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
