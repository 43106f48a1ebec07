#include "base/result.h"

#include <array>
#include <cerrno>
#include <system_error>

namespace drover {
namespace {

// Exit statuses follow sysexits.h where it has a fitting one; 125..127 and 128+n belong to the task itself.
constexpr std::array kKinds = {
    ErrorKindInfo{ErrorKind::kInvalid, "invalid", 400, 64},
    ErrorKindInfo{ErrorKind::kUnauthenticated, "unauthenticated", 401, 77},
    ErrorKindInfo{ErrorKind::kPermissionDenied, "permission_denied", 403, 77},
    ErrorKindInfo{ErrorKind::kNotFound, "not_found", 404, 66},
    ErrorKindInfo{ErrorKind::kConflict, "conflict", 409, 73},
    ErrorKindInfo{ErrorKind::kUnsupported, "unsupported", 422, 69},
    ErrorKindInfo{ErrorKind::kExhausted, "exhausted", 507, 75},
    ErrorKindInfo{ErrorKind::kUnavailable, "unavailable", 503, 69},
    ErrorKindInfo{ErrorKind::kTimeout, "timeout", 504, 75},
    ErrorKindInfo{ErrorKind::kCorrupt, "corrupt", 500, 65},
    ErrorKindInfo{ErrorKind::kInternal, "internal", 500, 70},
};

ErrorKind kind_from_errno(int value) {
  switch (value) {
    case EPERM:
    case EACCES:
      return ErrorKind::kPermissionDenied;
    case ENOENT:
    case ESRCH:
      return ErrorKind::kNotFound;
    case EEXIST:
    case EBUSY:
      return ErrorKind::kConflict;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return ErrorKind::kExhausted;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorKind::kUnsupported;
    case ECONNREFUSED:
    case EAGAIN:
      return ErrorKind::kUnavailable;
    case ETIMEDOUT:
      return ErrorKind::kTimeout;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG:
      return ErrorKind::kInvalid;
    default:
      return ErrorKind::kInternal;
  }
}

}  // namespace

Error errno_error(std::string_view what, int errno_value) {
  std::string hint;
  if (errno_value == ENOSPC || errno_value == EDQUOT) hint = "free some space on that file system";
  return Error{kind_from_errno(errno_value),
               std::string(what) + ": " + std::generic_category().message(errno_value), std::move(hint), ""};
}

Failure fail_errno(std::string_view what, int errno_value) {
  return Failure(errno_error(what, errno_value));
}

Error context(Error error, std::string_view what) {
  error.message = std::string(what) + ": " + error.message;
  return error;
}

const ErrorKindInfo& error_kind_info(ErrorKind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

ErrorKind error_kind_from_name(std::string_view name) {
  for (const auto& info : kKinds)
    if (info.name == name) return info.kind;
  return ErrorKind::kInternal;
}

std::string to_string(const Error& error) {
  std::string text = error.path.empty() ? error.message : error.path + ": " + error.message;
  if (!error.hint.empty()) text += " (" + error.hint + ")";
  return text;
}

}  // namespace drover
