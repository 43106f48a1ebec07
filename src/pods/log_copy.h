#pragma once

// What a pod has written, copied into a file as it was written: the API server's log of the container,
// without the times that it puts before each line. A copy that broke off goes on after the last whole line
// that it has, in another life of the daemon too: a file beside it says how far it came. Of what the node
// keeps; older lines are gone. No line is held in memory, however long it is.

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "kube/client/api.h"

namespace drover::pods {

/// Copies what there is beyond what the file has into "stdout" of the task's sandbox; with `follow` until the
/// container has ended. Blocks. `task`: the task's folder, which nobody else writes to. `pod`: its path.
/// kNotFound when the server knows no such pod, kUnavailable with the node's words when it cannot read on.
Status copy_log(kube::Api& api, const kube::ObjectPath& pod, const Directory& task, bool follow,
                const std::stop_token& stop);

/// What a container writes on its terminal comes another way, and is in the log all the same once its lines
/// are whole: adds what the log has beyond the first `known` bytes to `output`, as long as the node keeps the
/// beginning. A log has lost the '\r' that terminals have before each '\n'.
Status append_terminal_log(kube::Api& api, const kube::ObjectPath& pod, int output, std::uint64_t known,
                           const std::stop_token& stop);

/// "stdout" of the task's sandbox, which is made if need be, to be added to. The task's user may read it.
Result<UniqueFd> open_output(const Directory& task);

/// The folder in that of a task which is shown as its sandbox.
inline constexpr const char* kSandboxFolder = "sandbox";

/// "2026-11-27T14:05:09.1Z" in a form whose order is that of time; "" when it is no time.
std::string ordered_time(std::string_view time);

}  // namespace drover::pods
