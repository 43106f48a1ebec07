#include "cli/letters.h"

#include <wchar.h>

#include <algorithm>

namespace drover::cli {

Letters::Letters(std::string_view text) : text_(text) {
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  before_ = ::uselocale(utf8);
}

Letters::~Letters() {
  ::uselocale(before_);
}

Letter Letters::next() {
  wchar_t wide = 0;
  mbstate_t state{};
  const auto size = ::mbrtowc(&wide, text_.data(), text_.size(), &state);
  const bool good = size > 0 && size <= text_.size();
  const auto columns = good ? ::wcwidth(wide) : 1;
  const Letter letter{text_.substr(0, good ? size : 1), static_cast<std::size_t>(std::max(columns, 0)), good};
  text_.remove_prefix(letter.bytes.size());
  return letter;
}

}  // namespace drover::cli
