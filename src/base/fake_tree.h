#pragma once

// For tests: a temporary folder that vanishes with its object, filled path by path. Not thread safe.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace drover {

class FakeTree {
 public:
  FakeTree() {
    std::string pattern = std::filesystem::temp_directory_path() / "drover-test-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::string root() const { return root_; }
  std::string operator/(std::string_view path) const { return root_ / path; }

  FakeTree& file(std::string_view path, std::string_view content) {
    make_parent(path);
    std::ofstream(root_ / path, std::ios::binary) << content;
    return *this;
  }
  FakeTree& folder(std::string_view path) {
    std::filesystem::create_directories(root_ / path);
    return *this;
  }
  FakeTree& link(std::string_view path, std::string_view target) {
    make_parent(path);
    std::filesystem::create_symlink(target, root_ / path);
    return *this;
  }

 private:
  void make_parent(std::string_view path) {
    std::filesystem::create_directories((root_ / path).parent_path());
  }

  std::filesystem::path root_;
};

}  // namespace drover
