#include "container/capabilities.h"

namespace drover::container {

std::vector<std::string> capabilities_of(const User& user) {
  if (user.uid != 0) return {};
  return {"CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",    "CAP_FSETID",
          "CAP_KILL",    "CAP_NET_BIND_SERVICE", "CAP_SETFCAP",   "CAP_SETGID",
          "CAP_SETPCAP", "CAP_SETUID",           "CAP_SYS_CHROOT"};
}

}  // namespace drover::container
