#pragma once

// The flags that bring files, folders and a network to a task: --fetch, --volume, --device, --network,
// --publish. Pure but for this process's working directory.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::cli {

/// As they were written.
struct AttachmentFlags {
  std::vector<std::string> fetch;      ///< "https://…", "data.tar.gz"
  std::vector<std::string> volumes;    ///< "HOST:CONTAINER", with ":ro" or ":rw"
  std::vector<std::string> devices;    ///< "vendor.com/class=name"
  std::string network;                 ///< "host", "bridge"
  std::vector<std::string> published;  ///< "80", "8080:80", "53/udp"
};

/// Puts them into the request. Ports are only of a network of the task's own: who publishes one has one. An
/// error names the flag.
Status add_attachments(const AttachmentFlags& flags, nlohmann::json& body);

}  // namespace drover::cli
