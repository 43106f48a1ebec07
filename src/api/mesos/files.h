#pragma once

// Sandboxes, by the paths that the views of tasks give as their `directory`. Looked at with the rights of the
// caller, beside the control strand.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/router.h"
#include "base/sandbox.h"

namespace drover::api::mesos {

struct ListedFile {
  std::string path;
  std::string user;  ///< who has it; a number where the machine's user database has no name
  FileInfo file;
};

struct FilePiece {
  std::uint64_t size = 0;  ///< of the whole file
  std::string data;
};

/// What is asked of a file: at most 64 KiB at once, and its size alone when `offset` is -1.
struct WantedPiece {
  std::int64_t offset = -1;
  std::int64_t length = -1;  ///< as much as may be
};

/// Make the answer, beside the control strand.
using ShowFiles = std::function<Result<Response>(const std::vector<ListedFile>& files)>;
using ShowPiece = std::function<Result<Response>(FilePiece piece)>;

/// 400 and 404 as Mesos answers them, with one sentence.
asio::awaitable<Result<Response>> list_files(const Services& services, const engine::Caller& caller,
                                             const std::string& path, ShowFiles show);
asio::awaitable<Result<Response>> read_file(const Services& services, const engine::Caller& caller,
                                            const std::string& path, WantedPiece wanted, ShowPiece show);

}  // namespace drover::api::mesos
