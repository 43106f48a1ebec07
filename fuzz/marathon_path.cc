#include "fuzz.h"
#include "marathon/path.h"

/// A path, and behind a line's end the group that it is seen from. An absolute path stays as it is, and what
/// is right is made of whole segments.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto text = fuzz::text_of(data, size);
  const auto end = std::min(text.find('\n'), text.size());
  const auto base = marathon::absolute_path(text.substr(std::min(end + 1, text.size())));
  const auto path = marathon::absolute_path(text.substr(0, end), base);
  fuzz::require(path.starts_with('/') && marathon::absolute_path(path) == path);
  fuzz::require(marathon::is_within(path, "/") && marathon::is_within(path, path));
  fuzz::require(marathon::is_within(path, marathon::parent_path(path)));
  const bool is_app = marathon::app_path_mistakes(path).empty();
  if (is_app) fuzz::require(marathon::path_mistakes(path).empty() && path.size() <= marathon::kMaxPath);
  if (is_app) fuzz::require(!marathon::last_segment(path).empty());
  return 0;
}
