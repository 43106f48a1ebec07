#pragma once

// What the control plane asks the agent of a node (service.h), whatever carries it. What an agent answers is
// not believed to be well formed. Thread safe as `ask` is; blocks as that does.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sandbox.h"
#include "kube/sandboxes/wire.h"
#include "kube/usage/idle_pods.h"

namespace drover::kube {

using AskAgent = std::function<Result<WireAnswer>(const WireRequest& request)>;

/// As those of Sandbox, of the sandbox of this pod.
Result<std::vector<FileInfo>> browse_sandbox(const AskAgent& ask, const std::string& uid, const User& reader,
                                             const std::string& path);
/// Each piece is asked for by itself; one that is another file by then is a kConflict.
Result<SandboxContent> sandbox_file(const AskAgent& ask, const std::string& uid, const User& reader,
                                    const std::string& path);
Status remove_sandbox(const AskAgent& ask, const std::string& uid);
/// In bytes, by the uids of pods.
Result<std::map<std::string, std::uint64_t>> sandbox_sizes(const AskAgent& ask);
/// How long the GPUs of those pods did nothing that have some there, and of which it is known.
Result<IdleTimes> idle_times(const AskAgent& ask);
/// Kills the containers of this pod; fine when it has ended. kNotFound when it has no sandbox there.
Status kill_pod(const AskAgent& ask, const std::string& uid);

}  // namespace drover::kube
