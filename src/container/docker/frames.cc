#include "container/docker/frames.h"

#include <algorithm>

namespace drover::container::docker {

Status FrameReader::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (head_size_ < kHead) {
      head_[head_size_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (head_size_ < kHead) continue;
      if (head_[0] > 2 || head_[1] != 0 || head_[2] != 0 || head_[3] != 0)
        return fail(ErrorKind::kCorrupt, "The Docker Engine sent output that is in no frame");
      left_ = 0;
      for (std::size_t i = 4; i < kHead; ++i) left_ = left_ << 8 | head_[i];
      if (left_ == 0) head_size_ = 0;
      continue;
    }
    const auto part = bytes.substr(0, left_);
    sink(head_[0] == 2 ? 1 : 0, part);
    bytes.remove_prefix(part.size());
    left_ -= static_cast<std::uint32_t>(part.size());
    if (left_ == 0) head_size_ = 0;
  }
  return {};
}

}  // namespace drover::container::docker
