#pragma once

// The stream of a container without a terminal: frames of 8 bytes head (which output, three zeros, the length
// in big endian) and their payload, as POST /containers/{id}/attach documents them. Not thread safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace drover::container::docker {

class FrameReader {
 public:
  /// 0: stdout, 1: stderr. What is given is a part of a frame, or all of it.
  using Sink = std::function<void(std::size_t output, std::string_view bytes)>;

  /// Any cut of the stream. kCorrupt when it is no such stream; nothing can be read after that.
  Status feed(std::string_view bytes, const Sink& sink);

 private:
  static constexpr std::size_t kHead = 8;
  std::array<unsigned char, kHead> head_{};
  std::size_t head_size_ = 0;
  std::uint32_t left_ = 0;  ///< of the payload
};

}  // namespace drover::container::docker
