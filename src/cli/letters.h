#pragma once

// The letters of a text as a terminal shows them, in UTF-8, whatever the machine's locale is. What is not
// UTF-8 comes byte by byte. For the thread that made it.

#include <locale.h>

#include <cstddef>
#include <string_view>

namespace drover::cli {

/// One letter and how many columns it takes: two for letters of East Asia, none for marks above others.
struct Letter {
  std::string_view bytes;
  std::size_t columns = 1;
  bool good = true;  ///< else it is a byte of no letter
};

class Letters {
 public:
  explicit Letters(std::string_view text);
  ~Letters();
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;

  bool done() const { return text_.empty(); }
  Letter next();

 private:
  std::string_view text_;
  locale_t before_;
};

}  // namespace drover::cli
