#pragma once

// The secrets of TCP, as the credentials file has them now. Used on the strand of its context.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/access.h"
#include "file_watch.h"

namespace drover {

struct CredentialsPorts {
  std::function<void(std::function<void()>)> pool;         ///< runs what may block
  std::function<void(std::vector<api::Credential>)> take;  ///< on the strand
};

/// Hands the secrets to `take` after each change of the file. One that makes no sense is told in the log and
/// changes nothing. nullptr, and a line of the log, where files cannot be watched. The context ends no later
/// than what the ports need.
std::unique_ptr<FileWatch> watch_credentials(boost::asio::io_context& context, std::string path,
                                             CredentialsPorts ports);

}  // namespace drover
