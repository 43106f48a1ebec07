#pragma once

// A folder of a task's sandbox as a tar, file by file through the API: it is read with the rights of whoever
// asks. Blocks.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client.h"

namespace drover::cli {

struct SandboxFolder {
  std::string task;
  std::string path;  ///< in the sandbox
  std::string name;  ///< of it in the archive
};

/// Hands the archive to `write` piece by piece. The result names what is there and not in it: links, devices,
/// and what a folder has beyond the number of entries that the daemon lists. A file that shrinks while it is
/// read is an error; of one that grows there is what was there at first.
Result<std::vector<std::string>> write_archive(const Client& client, const SandboxFolder& folder,
                                               const std::function<Status(std::string_view)>& write);

}  // namespace drover::cli
