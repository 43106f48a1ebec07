#pragma once

// `drover fetcher`: the process that brings one task's files into its sandbox. It gives up root's rights for
// those of the task's user before it does anything else, so whatever a server or an archive makes of it, it
// can do no more than that user, and reads no file that the user could not read. It dies with the daemon.
//
// Standard input has its specification; what it has to say goes to standard output, one JSON object a line:
// {"progress": "…"} … and last {"done": true} or {"kind": "…", "message": "…", "hint": "…"}.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/users.h"
#include "container/fetch/download.h"
#include "container/fetch/extract.h"
#include "workload/task.h"

namespace drover::container {

/// The descriptors on which it finds the sandbox and the user's cache.
inline constexpr int kFetcherSandbox = 3;
inline constexpr int kFetcherCache = 4;

struct FetchLimits {
  DownloadLimits download{.least_in_window = kLeastInWindow};
  ExtractLimits extract;
  std::chrono::seconds all{6 * 3600};       ///< for all files of a task: it holds its GPUs meanwhile
  std::uint64_t cache_bytes = 20ULL << 30;  ///< for each user
};

struct FetchSpec {
  std::vector<workload::Fetch> files;
  User user;  ///< uid, gid and groups
  pid_t parent = 0;
  FetchLimits limits;
};

/// decode_fetch_spec(encode(spec)) has the same values.
std::string encode(const FetchSpec& spec);
Result<FetchSpec> decode_fetch_spec(std::string_view text);

/// The exit status says nothing: the last line does.
int run_fetcher();

/// The same in a container of a pod, which has the task's rights already and no descriptors: into `folder`,
/// by the specification in the environment. What goes wrong is one sentence on standard error, and the exit
/// status 1.
inline constexpr const char* kFetchOrder = "DROVER_FETCH";
int run_fetcher_into(const char* folder);

}  // namespace drover::container
