#include "ui/files.h"

#include <algorithm>

namespace drover::ui {

const File* find(std::string_view name) {
  const auto found = std::ranges::find(kFiles, name, &File::name);
  return found == kFiles.end() ? nullptr : &*found;
}

}  // namespace drover::ui
