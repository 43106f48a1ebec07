#pragma once

// By what executors of frameworks are known: "executor.<task>.<256 bits>", where the bits follow from the
// task's id and a key that only the daemon has. So no token is kept anywhere but in its container, and a
// container that is found again after a restart has the right one. Thread safe.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::api {

/// Where a container has it.
inline constexpr const char* kExecutorToken = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

class ExecutorTokens {
 public:
  /// `key` is secret.
  explicit ExecutorTokens(std::string key) : key_(std::move(key)) {}
  /// Reads the key, or makes one. Refuses a file that somebody else owns or may read.
  static Result<ExecutorTokens> open(const std::string& path);

  /// `task`: the id of the container of an executor.
  std::string of(const std::string& task) const;
  /// The task whose token this is; nullopt when it is nobody's. Takes the same time wherever a wrong one
  /// differs.
  std::optional<std::string> task_of(std::string_view token) const;

 private:
  std::string key_;
};

}  // namespace drover::api
