#pragma once

// By what a file that was replaced or written is told from what it was. Values.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

namespace drover::sim {

struct FileStamp {
  std::uint64_t inode = 0;
  std::int64_t size = -1;
  std::int64_t modified_ns = 0;

  bool operator==(const FileStamp&) const = default;

  /// A default one when there is no such file.
  static FileStamp of(const std::filesystem::path& file) {
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0) return {};
    return {info.st_ino, info.st_size, info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec};
  }
};

}  // namespace drover::sim
