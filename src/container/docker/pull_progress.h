#pragma once

// How far the pull of an image is: JSON objects, one a line, become sentences for people. Not thread safe.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::container::docker {

/// What an engine's words about a pull that failed mean; `otherwise` for those that say nothing of it.
ErrorKind kind_of_pull_failure(std::string_view words, ErrorKind otherwise);

class PullProgress {
 public:
  PullProgress(std::string image, std::function<void(const std::string&)> report)
      : image_(std::move(image)), report_(std::move(report)) {}

  /// Any cut of the answer. An Error when the pull failed.
  Status read(std::string_view bytes);
  /// After the last: an Error when the pull failed.
  Status finish();

 private:
  struct Layer {
    std::uint64_t current = 0;
    std::uint64_t total = 0;
    bool done = false;
  };
  Status read_line(std::string_view line);
  std::string sentence() const;

  std::string image_;
  std::function<void(const std::string&)> report_;
  std::string unread_;
  std::map<std::string, Layer> layers_;
  std::string reported_;
};

}  // namespace drover::container::docker
