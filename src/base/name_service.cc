#include "base/name_service.h"

namespace drover {

Result<bool> no_entry(int error) {
  // Services say in three ways that they do not know somebody (getpwnam(3)).
  if (error == 0 || error == ENOENT || error == ESRCH) return false;
  auto failure = errno_error("the machine's user database does not answer", error);
  failure.kind = ErrorKind::kUnavailable;
  failure.hint = "'getent passwd' asks it, too: look after the services in /etc/nsswitch.conf";
  return Failure(std::move(failure));
}

}  // namespace drover
