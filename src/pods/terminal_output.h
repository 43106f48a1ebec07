#pragma once

// What a container writes on its terminal, in "stdout" of the task's sandbox: as it comes by a connection,
// since its log has only whole lines; and from the log what no connection was there for. Goes on where it was
// in another life of the daemon. Not thread safe.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string_view>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "kube/client/api.h"

namespace drover::pods {

class TerminalOutput {
 public:
  /// `task`: the task's folder, which nobody else writes to. `pod`: the path of the attempt's.
  static Result<TerminalOutput> open(const Directory& task, const kube::ObjectPath& pod);

  /// Adds what the log has beyond that; blocks for 20 s at most. Fine when nobody knows the pod any more.
  Status catch_up(kube::Api& api, const std::stop_token& stop);
  /// Adds what comes. `first`: of a connection, after catch_up(): what the log had already is not repeated.
  /// On a full disk it is lost.
  void add(std::string_view piece, bool first);

 private:
  TerminalOutput(kube::ObjectPath pod, UniqueFd file, std::uint64_t begin)
      : pod_(std::move(pod)), file_(std::move(file)), begin_(begin) {}

  std::uint64_t size() const;
  std::size_t repeated(std::string_view piece) const;

  kube::ObjectPath pod_;
  UniqueFd file_;
  std::uint64_t begin_;  ///< where the attempt's own begins: what earlier ones wrote stands before
};

}  // namespace drover::pods
