#pragma once

// Errors are values. Every fallible function returns Result<T>; each level adds its context with `context()`.
// The message is one clear sentence without a full stop; the hint says what to do about it.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace drover {

enum class ErrorKind {
  kInvalid,           ///< the request itself is wrong: asking again in the same way will fail again
  kUnauthenticated,   ///< nobody knows who the caller is
  kPermissionDenied,  ///< the caller is known and may not do this
  kNotFound,
  kConflict,     ///< it exists already, or its state forbids the operation
  kUnsupported,  ///< this machine or this build cannot do it
  kExhausted,    ///< out of disk, memory, or another limit
  kUnavailable,  ///< a part that is needed does not answer now
  kTimeout,
  kCorrupt,   ///< stored data is damaged
  kInternal,  ///< our own mistake
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string hint;  ///< what to do; may be empty
  std::string path;  ///< where in the input: "/container/image" or a file; may be empty

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;
using Failure = tl::unexpected<Error>;

inline Failure fail(ErrorKind kind, std::string message, std::string hint = "", std::string path = "") {
  return Failure(Error{kind, std::move(message), std::move(hint), std::move(path)});
}

/// An Error from errno: `Failed to open '/x': Permission denied`. The kind follows from the errno.
Error errno_error(std::string_view what, int errno_value);
Failure fail_errno(std::string_view what, int errno_value);

/// Puts "`what`: " before the message, and keeps kind, hint and path.
Error context(Error error, std::string_view what);

/// What the table of kinds says: how a kind is spelled, its HTTP status, and the exit status of the CLI.
struct ErrorKindInfo {
  ErrorKind kind;
  std::string_view name;
  int http_status;
  int exit_status;
};
const ErrorKindInfo& error_kind_info(ErrorKind kind);
/// Unknown names read as kInternal: a newer server may know more kinds.
ErrorKind error_kind_from_name(std::string_view name);

/// For people: "message (hint)" on one line.
std::string to_string(const Error& error);

}  // namespace drover

#define DROVER_CONCAT_INNER(a, b) a##b
#define DROVER_CONCAT(a, b) DROVER_CONCAT_INNER(a, b)

/// `DROVER_TRY(lhs, expression)`: the value of a Result, or return its error from this function.
#define DROVER_TRY(lhs, ...) DROVER_TRY_AS(DROVER_CONCAT(drover_try_, __LINE__), lhs, __VA_ARGS__)
#define DROVER_TRY_AS(temporary, lhs, ...)                                \
  auto temporary = (__VA_ARGS__);                                         \
  if (!temporary) return ::drover::Failure(std::move(temporary).error()); \
  lhs = std::move(*temporary)

/// `DROVER_CHECK_OK(expression)`: return the error of a Status from this function, if it has one.
#define DROVER_CHECK_OK(...)                                      \
  do {                                                            \
    if (auto drover_status = (__VA_ARGS__); !drover_status)       \
      return ::drover::Failure(std::move(drover_status).error()); \
  } while (false)
