#pragma once

// Gets one file by http or https with libcurl, which is found at run time: a shim, which is this same
// program, need not load it and all it brings. Certificates are verified; redirects are followed to http and
// https only, 10 times at most. Blocks. Thread safe.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace drover::container {

/// By what a server's file is known again.
struct Validators {
  std::string etag;
  std::string last_modified;
  std::uint64_t size = 0;
};

struct DownloadLimits {
  std::uint64_t bytes = 1ULL << 40;
  std::chrono::seconds duration{6 * 3600};
  std::chrono::seconds stall{60};  ///< without a byte
};

struct Downloaded {
  bool unchanged = false;  ///< it is still what the given validators tell of; the file was not touched
  Validators validators;
};

/// `file` is filled from its start. The Error is half a sentence, "the server answered 404 (Not Found)".
Result<Downloaded> download(const std::string& uri, int file, const std::optional<Validators>& known,
                            const DownloadLimits& limits,
                            const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace drover::container
