#pragma once

// What a pod has written, copied into a file as it was written: the API server's log of the container,
// without the times that it puts before each line. A copy that broke off goes on where it was, in another
// life of the daemon too: a file beside it says how far it came. Of what the node keeps; older lines are
// gone.

#include <stop_token>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "kube/client/api.h"

namespace drover::pods {

struct LogTarget {
  const Directory& sandbox;  ///< gets "stdout"
  const Directory& task;     ///< gets "log.position"
  uid_t owner = 0;           ///< of "stdout"
  gid_t group = 0;
};

/// Copies what there is beyond what the file has; with `follow` until the container has ended. Blocks. `pod`:
/// its path. kNotFound when the server knows no such pod.
Status copy_log(kube::Api& api, const kube::ObjectPath& pod, const LogTarget& target, bool follow,
                const std::stop_token& stop);

/// "2026-11-27T14:05:09.1Z" in a form whose order is that of time; "" when it is no time.
std::string ordered_time(std::string_view time);

}  // namespace drover::pods
