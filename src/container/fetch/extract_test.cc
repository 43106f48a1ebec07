#include "container/fetch/extract.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;

class ExtractTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/drover-extract-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = static_cast<char*>(folder);
    fs::create_directory(folder_ + "/inside");
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Entry {
    std::string path;
    std::string content;
    unsigned mode = 0644;
    char type = '0';  ///< ustar: 1 hard link, 2 symlink, 3 and 4 devices, 5 folder, 6 fifo
    std::string link{};
  };

  static void put_octal(std::string& header, std::size_t at, int width, std::size_t value) {
    header.replace(at, static_cast<std::size_t>(width), fmt::format("{:0{}o} ", value, width - 1));
  }

  /// A plain tar (POSIX ustar), written as it is: nothing is checked or corrected.
  std::string pack(const std::vector<Entry>& entries) {
    std::string bytes;
    for (const auto& entry : entries) {
      std::string header(512, '\0');
      header.replace(0, entry.path.size(), entry.path);
      put_octal(header, 100, 8, entry.mode);
      put_octal(header, 108, 8, 12345);
      put_octal(header, 116, 8, 12345);
      put_octal(header, 124, 12, entry.content.size());
      put_octal(header, 136, 12, 0);
      header[156] = entry.type;
      header.replace(157, entry.link.size(), entry.link);
      header.replace(257, 8, std::string("ustar\00000", 8));
      header.replace(148, 8, "        ");
      std::size_t sum = 0;
      for (const unsigned char c : header) sum += c;
      header.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
      bytes += header + entry.content + std::string((512 - entry.content.size() % 512) % 512, '\0');
    }
    write(bytes + std::string(1024, '\0'));
    return folder_ + "/archive";
  }

  void write(const std::string& bytes) const {
    std::ofstream(folder_ + "/archive", std::ios::binary | std::ios::trunc) << bytes;
  }

  Status extract(const std::string& path, const ExtractLimits& limits = {}) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto inside = Directory::open(folder_ + "/inside");
    Tree tree(inside->fd());
    return extract_archive(file.get(), tree, limits);
  }

  std::string content(const std::string& name) const {
    std::ifstream file(folder_ + "/inside/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Everything in the folder beside the archive and "inside".
  std::size_t outside() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename() != "inside" && entry.path().filename() != "archive") ++count;
    return count;
  }

  std::string folder_;
};

TEST_F(ExtractTest, UnpacksFoldersAndFiles) {
  const auto done =
      extract(pack({{"./", "", 0755, '5'}, {"./a/", "", 0700, '5'}, {"a/b/run.sh", "hello", 0755}}));
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(content("a/b/run.sh"), "hello");
  EXPECT_EQ(fs::status(folder_ + "/inside/a/b/run.sh").permissions(), fs::perms(0755));
}

TEST_F(ExtractTest, DropsSetIdBitsAndOwners) {
  ASSERT_TRUE(extract(pack({{"a", "x", 06755}})));
  struct stat info{};
  ASSERT_EQ(::stat((folder_ + "/inside/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0755U);
  EXPECT_EQ(info.st_uid, ::geteuid());
}

TEST_F(ExtractTest, NothingGetsOut) {
  const std::vector<std::vector<Entry>> bad = {
      {{"../out", "x"}},
      {{"/tmp/drover-extract-out", "x"}},
      {{"a/../../out", "x"}},
      {{"link", "", 0777, '2', ".."}, {"link/out", "x"}},
      {{"link", "", 0777, '2', folder_}, {"link/out", "x"}},
      {{"out", "", 0644, '1', "../archive"}},
      {{"link", "", 0777, '2', "../archive"}, {"hard", "", 0644, '1', "link"}},
      {{"pipe", "", 0644, '6'}},
      {{"disk", "", 0644, '4'}},
      {{"gpu", "", 0666, '3'}}};
  for (const auto& entries : bad) {
    const auto done = extract(pack(entries));
    ASSERT_FALSE(done) << entries.back().path;
    EXPECT_EQ(done.error().kind, ErrorKind::kInvalid) << to_string(done.error());
    EXPECT_EQ(outside(), 0U) << entries.back().path;
    EXPECT_FALSE(fs::exists("/tmp/drover-extract-out"));
  }
}

TEST_F(ExtractTest, AFileOverALinkReplacesTheLink) {
  std::ofstream(folder_ + "/archive-target") << "kept";
  ASSERT_TRUE(extract(pack({{"link", "", 0777, '2', folder_ + "/archive-target"}, {"link", "mine", 0644}})));
  EXPECT_EQ(content("link"), "mine");
  EXPECT_FALSE(fs::is_symlink(folder_ + "/inside/link"));
  std::ifstream kept(folder_ + "/archive-target");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "kept");
}

TEST_F(ExtractTest, LinksInsideWork) {
  ASSERT_TRUE(extract(pack(
      {{"lib/a.so.1", "so"}, {"lib/a.so", "", 0777, '2', "a.so.1"}, {"same", "", 0644, '1', "lib/a.so.1"}})));
  EXPECT_EQ(content("lib/a.so"), "so");
  EXPECT_EQ(content("same"), "so");
}

TEST_F(ExtractTest, LimitsCountAndSizeAndGrowth) {
  const auto many = pack({{"a", ""}, {"b", ""}, {"c", ""}});
  EXPECT_EQ(extract(many, {.entries = 2}).error().kind, ErrorKind::kExhausted);
  EXPECT_TRUE(extract(many, {.entries = 3}));
  const auto large = pack({{"zeros", std::string(8 << 20, '\0')}});
  EXPECT_EQ(extract(large, {.expansion = 0, .free_bytes = 1000}).error().kind, ErrorKind::kExhausted);
  EXPECT_EQ(extract(large, {.bytes = 1 << 20}).error().kind, ErrorKind::kExhausted);
  EXPECT_TRUE(extract(large, {.expansion = 1, .free_bytes = 0}));
}

TEST_F(ExtractTest, RefusesWhatIsNoArchive) {
  std::ofstream(folder_ + "/archive") << "this is a text and nothing else, but it is named as an archive";
  EXPECT_FALSE(extract(folder_ + "/archive"));
  const auto whole = pack({{"a", std::string(100'000, 'x')}, {"b", "y"}});
  fs::resize_file(whole, 50'000);
  EXPECT_FALSE(extract(whole));
}

TEST_F(ExtractTest, OneCompressedFile) {
  write(std::string(
      "\037\213\010\000\000\000\000\000\002\003\313\110\315\311\311\007\000\206\246\020\066\005\000\000\000",
      25));  // gzip of "hello"
  const UniqueFd file(::open((folder_ + "/archive").c_str(), O_RDONLY | O_CLOEXEC));
  const auto inside = Directory::open(folder_ + "/inside");
  Tree tree(inside->fd());
  ASSERT_TRUE(extract_gzip(file.get(), tree, "deep/a", {}));
  EXPECT_EQ(content("deep/a"), "hello");
  write("plain");
  const UniqueFd plain(::open((folder_ + "/archive").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(extract_gzip(plain.get(), tree, "b", {}));
}

}  // namespace
}  // namespace drover::container
