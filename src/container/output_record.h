#pragma once

// When, and in which order, a task wrote to its two outputs: tasks/<id>/output.record, which belongs to root
// and lies beside the sandbox. It is a list of runs: "from this byte of this file on it was this output,
// since then". A run is what came on one output with nothing of the other in between, for kLongestRun at
// most, so that a flood of lines takes few of them. It is written down before its bytes are, so the run of a
// byte that somebody sees is known; the bytes of a file up to the next run in it belong to the run before.
//
// The file has a head and then entries of 16 bytes: the time in microseconds, with the output in the lowest
// bit, and the offset (40 bits) with the lowest bits of the file's inode. When it is full it becomes
// output.record.1, the place of which it takes: the oldest runs are forgotten, as the oldest output is.
// Together the two take an eighth of what the outputs may take. A disk that is full, or a record that is
// damaged, costs times and order, and never output.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/files.h"
#include "container/launch_spec.h"
#include "container/log_writer.h"

namespace drover::container {

inline constexpr const char* kOutputRecord = "output.record";
inline constexpr const char* kOldOutputRecord = "output.record.1";

using OutputTime = std::chrono::sys_time<std::chrono::microseconds>;

/// Identifies a file among the few of one output.
constexpr std::uint64_t file_tag(std::uint64_t inode) {
  return inode & 0xFF'FFFF;
}

struct OutputRun {
  int stream = 0;            ///< 0: stdout, 1: stderr
  std::uint64_t file = 0;    ///< file_tag() of where it is
  std::uint64_t offset = 0;  ///< of its first byte there
  OutputTime at{};           ///< when that came

  bool operator==(const OutputRun&) const = default;
};

/// The shim's side. Not thread safe.
class OutputRecorder {
 public:
  using Clock = std::function<OutputTime()>;
  static constexpr std::chrono::milliseconds kLongestRun{100};

  /// `task` is the descriptor of the task's folder, and outlives it. A record that is there is gone on with,
  /// or removed, as the outputs are.
  OutputRecorder(int task, LogLimits limits, OldLog old, Clock clock = {});

  /// Before bytes are written to the end of `file`, which is the newest of that output.
  void note(int stream, int file);
  /// What comes next on this output is written elsewhere than behind what came before.
  void end_run(int stream);

 private:
  void go_on();
  bool begin_file();
  bool write(const OutputRun& run);

  int task_;
  std::uint64_t limit_;  ///< of each of the two files
  Clock clock_;
  UniqueFd file_;
  std::uint64_t size_ = 0;
  int stream_ = -1;  ///< of the run that goes on; -1: none does
  OutputTime began_{};
};

/// The daemon's side: runs by their numbers, which count from 1 in the order of all, and hold for this object
/// alone. Not thread safe.
class OutputRecord {
 public:
  /// Of the task with this sandbox. Where there is no record it has no runs.
  static OutputRecord open(const std::string& sandbox);

  /// Looks for what was added.
  void refresh();
  /// Runs from begin() on and before end() can be read.
  std::uint64_t begin() const { return segments_.empty() ? 1 : segments_.front().first; }
  std::uint64_t end() const { return segments_.empty() ? 1 : segments_.back().end(); }
  /// Fills `runs` from the run of that number on, and returns how many it has read: fewer than there are when
  /// they lie in another file, none when there are none. A damaged one has no stream (-1).
  std::size_t read(std::uint64_t number, std::span<OutputRun> runs) const;

 private:
  struct Segment {
    UniqueFd file;
    std::uint64_t inode = 0;
    std::uint64_t first = 1, count = 0;
    std::uint64_t end() const { return first + count; }
  };

  void add(UniqueFd file);
  static std::uint64_t count_of(const Segment& segment);

  std::string task_;  ///< the task's folder
  std::deque<Segment> segments_;
};

}  // namespace drover::container
