#pragma once

// The shim's end of what people write to a task: a socket in the task's folder, to which the daemon carries
// their frames (docs/api.md) without looking at them. What comes goes on to the container's standard input,
// or its terminal, no faster than the container reads it, and is acknowledged then: who lost the connection
// knows what is still to be sent. One writes at a time: who comes takes the place of who was there. The
// writer's bytes are a stranger's. Not thread safe.

#include <poll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/files.h"
#include "base/frames.h"
#include "base/result.h"

namespace drover::container {

class TaskInput {
 public:
  /// Listens in the task's folder.
  static Result<TaskInput> open(const Directory& task);

  /// Where it goes from now on: the writing end of a pipe, or a terminal, which can be resized and does not
  /// end. With `resize` that is told of its size.
  using Resize = std::function<void(int rows, int columns)>;
  void begin(UniqueFd sink, bool is_terminal, Resize resize = {});
  /// What comes waits until it begins again.
  void suspend();

  std::array<pollfd, 3> polls() const;
  /// `polls` as poll(2) has left them.
  void take(const pollfd* polls);

 private:
  void accept();
  void receive();
  void handle_frames();
  void handle(Frame frame);
  void greet(const std::string& session);
  void resize(const std::string& size) const;
  void pass_on();
  void acknowledge();
  void send(const Frame& frame);

  UniqueFd listener_, client_, sink_;
  bool begun_ = false;
  bool is_terminal_ = false;
  Resize resize_;
  FrameParser parser_;
  std::string pending_;      ///< came, and was not taken yet
  std::string session_;      ///< the writer's word for itself
  std::uint64_t taken_ = 0;  ///< bytes of this session
  std::uint64_t acknowledged_ = 0;
};

/// The daemon's end: connects to the shim of the task whose folder this is. kUnsupported when the task takes
/// no input. Blocks for a moment at most.
Result<UniqueFd> connect_input(const Directory& task);

}  // namespace drover::container
