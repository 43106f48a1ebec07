#pragma once

// One output of a task, written into its sandbox: "stdout", and when that is full "stdout.1", "stdout.2" …,
// the oldest being dropped. The sandbox belongs to the task, which may put links or folders in the way: files
// are only ever made anew (O_EXCL) by descriptor and never opened by a name that the task could have set, so
// root is led nowhere. A full disk drops lines, counts them, and says so in the log once there is space
// again; the task is never held up. Not thread safe.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "container/launch_spec.h"

namespace drover::container {

/// What becomes of an output that is there already.
enum class OldLog {
  kRemove,
  kKeep,  ///< as if it were full: it becomes "stdout.1"
};

class OutputRecorder;

class LogWriter {
 public:
  /// `sandbox` is a directory descriptor that outlives the writer.
  static Result<LogWriter> create(int sandbox, std::string name, uid_t uid, gid_t gid, LogLimits limits,
                                  OldLog old = OldLog::kRemove);

  /// Has it write down when output came (output_record.h): as that of `stream`, 0 or 1.
  void record_in(std::shared_ptr<OutputRecorder> recorder, int stream);

  void append(std::string_view output);

 private:
  LogWriter(int sandbox, std::string name, uid_t uid, gid_t gid, LogLimits limits)
      : sandbox_(sandbox), name_(std::move(name)), uid_(uid), gid_(gid), limits_(limits) {}

  Status make_file();
  void note();
  void end_run();
  void move_on();
  void rotate();
  void write(std::string_view output);
  bool put(std::string_view output);
  std::string numbered(int number) const;

  int sandbox_;
  std::string name_;
  uid_t uid_;
  gid_t gid_;
  LogLimits limits_;
  std::shared_ptr<OutputRecorder> recorder_;
  int stream_ = 0;
  UniqueFd file_;
  std::uint64_t size_ = 0;
  std::uint64_t dropped_ = 0;
  bool line_open_ = false;  ///< the last line is not complete: files change between lines where they can
};

}  // namespace drover::container
