#pragma once

// Gets one file by http or https. Redirects are followed to http and https only, 10 times at most. Blocks.
// Thread safe.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/http_client.h"
#include "base/result.h"

namespace drover::container {

/// By what a server's file is known again.
struct Validators {
  std::string etag;
  std::string last_modified;
  std::uint64_t size = 0;
};

using DownloadLimits = HttpLimits;

struct Downloaded {
  bool unchanged = false;  ///< it is still what the given validators tell of; the file was not touched
  Validators validators;
};

/// `file` is filled from its start. The Error is half a sentence, "the server answered 404 (Not Found)".
Result<Downloaded> download(const std::string& uri, int file, const std::optional<Validators>& known,
                            const DownloadLimits& limits,
                            const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace drover::container
