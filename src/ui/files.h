#pragma once

// The files of the web page, which are part of the program. Thread safe.

#include <span>
#include <string_view>

namespace drover::ui {

struct File {
  std::string_view name;     ///< "index.html", "main-A1B2C3D4.js": those with a digest in it never change
  std::string_view type;     ///< "text/javascript"
  std::string_view digest;   ///< of what it says
  std::string_view content;  ///< compressed by gzip
};

/// By name. Empty in a build without Node.js, which makes them.
extern const std::span<const File> kFiles;

/// nullptr when there is none.
const File* find(std::string_view name);

}  // namespace drover::ui
