#include "image/unpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "image/fixtures.h"
#include "image/layer_tree.h"

namespace drover::image {
namespace {

namespace fs = std::filesystem;
using testing::file;
using testing::folder;
using testing::hard_link;
using ::testing::HasSubstr;
using testing::Item;
using testing::make_tar;
using testing::symlink;
using testing::TemporaryFolder;

class MemoryStream : public ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : rest_(bytes) {}
  Result<std::string_view> next() override {
    const auto block = rest_.substr(0, 4096);
    rest_.remove_prefix(block.size());
    return block;
  }

 private:
  std::string_view rest_;
};

Status unpack(const std::string& tar, const std::string& target, const UnpackLimits& limits = {}) {
  fs::create_directories(target);
  MemoryStream stream(tar);
  DROVER_TRY(const auto folder, Directory::open(target));
  Allowance allowance(limits);
  return unpack_layer(stream, folder, allowance);
}

struct stat stat_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string attribute(const std::string& path, const char* name) {
  char value[64];
  const auto size = ::lgetxattr(path.c_str(), name, value, sizeof value);
  return size < 0 ? "" : std::string(value, static_cast<std::size_t>(size));
}

bool is_whiteout(const std::string& path) {
  const auto info = stat_of(path);
  return S_ISCHR(info.st_mode) && info.st_rdev == 0;
}

class Unpack : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "unpacking gives files their owners, which only root can";
  }
  std::string at(const std::string& name) const { return target_ + "/" + name; }
  void expect_unpacks(const std::vector<Item>& items) {
    const auto done = unpack(make_tar(items), target_);
    ASSERT_TRUE(done) << to_string(done.error());
  }

  TemporaryFolder scratch_;
  std::string target_ = scratch_ / "layer";
};

TEST_F(Unpack, ZerosTakeNoSpace) {
  const auto zeros = "begin" + std::string(1 << 20, '\0') + "end" + std::string(1 << 20, '\0');
  const auto done = unpack(make_tar({file("zeros", zeros)}), target_);
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(content(target_ + "/zeros"), zeros);
  EXPECT_LT(stat_of(target_ + "/zeros").st_blocks * 512, 1 << 20);
}

TEST_F(Unpack, KeepsWhatFilesAre) {
  Item tool = file("bin/tool", "run", 04755);
  tool.uid = 1000;
  tool.gid = 2000;
  tool.pax = {{"SCHILY.xattr.user.note", "kept"}, {"SCHILY.xattr.trusted.overlay.opaque", "y"}};
  expect_unpacks({folder("./", 0700), folder("bin", 01777), tool, symlink("sh", "/bin/tool"),
                  hard_link("same", "./bin/tool"), Item{.path = "queue", .type = '6', .mode = 0622}});
  const auto info = stat_of(at("bin/tool"));
  EXPECT_EQ(info.st_mode & 07777, 04755U);
  EXPECT_EQ(info.st_uid, 1000U);
  EXPECT_EQ(info.st_gid, 2000U);
  EXPECT_EQ(info.st_mtime, 1'500'000'000);
  EXPECT_EQ(stat_of(at("bin")).st_mode & 07777, 01777U);
  EXPECT_EQ(stat_of(at("bin")).st_mtime, 1'500'000'000) << "filling a folder must not change its time";
  EXPECT_EQ(stat_of(target_).st_mode & 07777, 0700U);
  EXPECT_EQ(content(at("bin/tool")), "run");
  EXPECT_EQ(attribute(at("bin/tool"), "user.note"), "kept");
  EXPECT_EQ(attribute(at("bin/tool"), "trusted.overlay.opaque"), "");
  EXPECT_EQ(fs::read_symlink(at("sh")), "/bin/tool");
  EXPECT_EQ(stat_of(at("same")).st_ino, info.st_ino);
  EXPECT_TRUE(S_ISFIFO(stat_of(at("queue")).st_mode));
  EXPECT_EQ(stat_of(at("queue")).st_mode & 07777, 0622U);
}

TEST_F(Unpack, KeepsFileCapabilities) {
  // Version 2, permitted and effective CAP_NET_RAW.
  const std::string capability(
      "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);
  Item ping = file("ping", "x", 0755);
  ping.pax = {{"SCHILY.xattr.security.capability", capability}};
  expect_unpacks({ping});
  EXPECT_EQ(attribute(at("ping"), "security.capability"), capability);
}

TEST_F(Unpack, TakesNamesInAnyEncoding) {
  Item unicode = file("short", "1");
  unicode.pax = {{"path", "caf\xc3\xa9"}};
  Item latin = file("na\xefve", "2");
  expect_unpacks({unicode, latin});
  EXPECT_EQ(content(at("caf\xc3\xa9")), "1");
  EXPECT_EQ(content(at("na\xefve")), "2");
}

TEST_F(Unpack, MakesMissingFolders) {
  expect_unpacks({file("/a/b/c", "x")});
  EXPECT_EQ(stat_of(at("a/b")).st_mode & 07777, 0755U);
  EXPECT_EQ(stat_of(at("a/b")).st_mtime, 0);
  EXPECT_EQ(stat_of(target_).st_mode & 07777, 0755U);
}

TEST_F(Unpack, TheLastEntryOfANameCounts) {
  expect_unpacks({file("f", "1"), file("f", "22"), folder("was-folder"), folder("was-folder/deep"),
                  file("was-folder/deep/x", "1"), file("was-folder", "now a file"),
                  symlink("was-link", "/etc"), folder("was-link"), file("was-link/inside", "1"),
                  folder("kept"), file("kept/x", "1"), folder("kept", 0700)});
  EXPECT_EQ(content(at("f")), "22");
  EXPECT_EQ(content(at("was-folder")), "now a file");
  EXPECT_EQ(content(at("was-link/inside")), "1");
  EXPECT_FALSE(fs::is_symlink(at("was-link")));
  EXPECT_EQ(content(at("kept/x")), "1");
  EXPECT_EQ(stat_of(at("kept")).st_mode & 07777, 0700U);
}

TEST_F(Unpack, FollowsLinksThatStayInside) {
  expect_unpacks({folder("usr"), folder("usr/lib"), symlink("lib", "usr/lib"), file("lib/x.so", "1"),
                  symlink("usr/lib/up", "../../usr"), file("lib/up/y", "2"), hard_link("z", "lib/x.so")});
  EXPECT_EQ(content(at("usr/lib/x.so")), "1");
  EXPECT_EQ(content(at("usr/y")), "2");
  EXPECT_EQ(content(at("z")), "1");
}

TEST_F(Unpack, LeavesASymlinkAloneWhenAFileTakesItsPlace) {
  testing::write(scratch_ / "outside", "safe");
  expect_unpacks({symlink("f", scratch_ / "outside"), file("f", "mine")});
  EXPECT_EQ(content(scratch_ / "outside"), "safe");
  EXPECT_EQ(content(at("f")), "mine");
}

TEST_F(Unpack, AHardLinkToItselfChangesNothing) {
  expect_unpacks({file("f", "x"), hard_link("f", "f"), hard_link("g", "f"), hard_link("g", "f")});
  EXPECT_EQ(content(at("f")), "x");
  EXPECT_EQ(stat_of(at("f")).st_nlink, 2U);
}

TEST_F(Unpack, TakesAnEmptyLayer) {
  expect_unpacks({});
  EXPECT_TRUE(fs::is_empty(target_));
}

struct Hostile {
  std::string name;
  std::vector<Item> items;
  std::string names;  ///< what the message must hold
};

class UnpackRefuses : public Unpack, public ::testing::WithParamInterface<Hostile> {};

TEST_P(UnpackRefuses, NamingTheEntry) {
  testing::write(scratch_ / "secret", "safe");
  fs::create_directory(scratch_ / "beside");
  const auto done = unpack(make_tar(GetParam().items), target_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::kInvalid) << done.error().message;
  EXPECT_THAT(done.error().message, HasSubstr(GetParam().names));
  EXPECT_EQ(done.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(content(scratch_ / "secret"), "safe");
  EXPECT_TRUE(fs::is_empty(scratch_ / "beside"));
  EXPECT_EQ(stat_of(scratch_ / "secret").st_nlink, 1U);
}

const std::string kDeep = [] {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "d/";
  return deep;
}();

INSTANTIATE_TEST_SUITE_P(
    Entries, UnpackRefuses,
    ::testing::Values(
        Hostile{"DotDot", {file("../secret", "evil")}, "'../secret' climbs out"},
        Hostile{"DotDotInside", {file("a/../../secret", "evil")}, "climbs out"},
        Hostile{"AbsoluteLink", {symlink("out", "/"), file("out/tmp/evil", "x")}, "'out' leads out"},
        Hostile{"RelativeLink", {symlink("out", "../beside"), file("out/evil", "x")}, "'out' leads out"},
        Hostile{"LinkOfLink",
                {symlink("a", "b"), symlink("b", ".."), file("a/beside/evil", "x")},
                "'a' leads out"},
        Hostile{"FolderThroughLink", {symlink("out", "../beside"), folder("out/evil")}, "'out' leads out"},
        Hostile{"SymlinkThroughLink", {symlink("out", ".."), symlink("out/evil", "x")}, "'out' leads out"},
        Hostile{"WhiteoutThroughLink", {symlink("out", ".."), file("out/.wh.secret", "")}, "'out' leads out"},
        Hostile{"OpaqueThroughLink",
                {symlink("out", "../beside"), file("out/.wh..wh..opq", "")},
                "'out' leads out"},
        Hostile{
            "FifoThroughLink", {symlink("out", ".."), {.path = "out/evil", .type = '6'}}, "'out' leads out"},
        Hostile{"LinkCircle", {symlink("a", "b"), symlink("b", "a"), file("a/x", "")}, "'a' leads out"},
        Hostile{
            "LinkToNothing", {symlink("a", "gone"), file("a/x", "")}, "'a' is a symbolic link to a folder"},
        Hostile{"HardLinkDotDot", {hard_link("evil", "../secret")}, "'../secret' climbs out"},
        Hostile{"HardLinkThroughLink", {symlink("out", ".."), hard_link("evil", "out/secret")}, "leads out"},
        Hostile{"HardLinkToNothing", {hard_link("evil", "etc/passwd")}, "which the layer does not have"},
        Hostile{"HardLinkToFolder", {folder("d"), hard_link("evil", "d")}, "which is not a file"},
        Hostile{"HardLinkToWhiteout", {file(".wh.f", ""), hard_link("evil", "f")}, "which is not a file"},
        Hostile{"CharacterDevice", {{.path = "dev/sda", .type = '3'}}, "'dev/sda' is a device node"},
        Hostile{"BlockDevice", {{.path = "dev/sda", .type = '4'}}, "'dev/sda' is a device node"},
        Hostile{"FileAsFolder", {file("a", ""), file("a/b", "")}, "'a' is not a folder"},
        Hostile{"RootAsFile", {symlink(".", "/etc")}, "would replace the root"},
        Hostile{"WhiteoutOfDotDot", {file("a/.wh...", "")}, "whiteout of no file"},
        Hostile{"LongName", {{.path = "x", .pax = {{"path", std::string(256, 'n')}}}}, "more than 255 bytes"},
        Hostile{"Owner", {{.path = "owned", .pax = {{"uid", "4294967295"}}}}, "'owned' has an owner"},
        Hostile{"DeepThroughLinks",
                {folder(kDeep),
                 symlink("s1", kDeep),
                 {.path = "x", .type = '5', .pax = {{"path", "s1/" + kDeep}}},
                 symlink("s2", "s1/" + kDeep),
                 {.path = "x", .type = '5', .pax = {{"path", "s2/" + kDeep}}},
                 symlink("s3", "s2/" + kDeep),
                 {.path = "x", .type = '5', .pax = {{"path", "s3/" + kDeep}}},
                 symlink("s4", "s3/" + kDeep),
                 {.path = "x", .type = '5', .pax = {{"path", "s4/" + kDeep}}},
                 symlink("s5", "s4/" + kDeep),
                 {.path = "x", .type = '5', .pax = {{"path", "s5/" + kDeep}}},
                 symlink("s6", "s5/" + kDeep),
                 {.path = "x", .type = '5', .pax = {{"path", "s6/" + kDeep}}}},
                "lies in more than 256 folders"}),
    [](const auto& test) { return test.param.name; });

TEST_F(Unpack, LimitsEntriesSizesAndSpace) {
  EXPECT_THAT(unpack(make_tar({file("a", ""), file("b", "")}), target_, {.entries = 1}).error().message,
              HasSubstr("more than 1 files"));
  EXPECT_THAT(
      unpack(make_tar({file("big", std::string(2000, 'x'))}), target_, {.bytes = 1000}).error().message,
      HasSubstr("'big' is larger than"));
  const auto full = unpack(make_tar({file("a", "")}), target_, {.reserved_space = 1ULL << 60});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::kExhausted);
  struct statvfs info{};
  ASSERT_EQ(::statvfs(target_.c_str(), &info), 0);
  if (info.f_files == 0) return;  // some file systems do not count them
  const auto crowded = unpack(make_tar({file("a", "")}), target_, {.reserved_files = 1ULL << 60});
  EXPECT_THAT(to_string(crowded.error()), HasSubstr("more files where images are unpacked"));
}

TEST_F(Unpack, FoldersDoNotFillTheMemory) {
  fs::create_directories(target_);
  const auto root = Directory::open(target_).value();
  LayerTree tree(root, 1 << 20);
  TarEntry folder;
  folder.mode = 0755;
  Status done;
  int count = 0;
  while (done && count < 10'000)
    done = tree.add_directory(std::string(200, 'd') + std::to_string(count++), folder);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("one folder too many"));
  EXPECT_GT(count, 1000);
}

TEST_F(Unpack, SaysThatTheDiskIsFull) {
  fs::create_directory(scratch_ / "small");
  if (::mount("tmpfs", (scratch_ / "small").c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "a tmpfs cannot be mounted here";
  const auto done = unpack(make_tar({file("big", std::string(2 << 20, 'x'))}), scratch_ / "small/layer",
                           {.reserved_space = 0});
  ::umount2((scratch_ / "small").c_str(), MNT_DETACH);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::kExhausted);
  EXPECT_THAT(done.error().message, HasSubstr("'big'"));
  EXPECT_NE(done.error().hint, "");
}

TEST_F(Unpack, RefusesWhatIsNoTar) {
  for (const auto& junk : {std::string("hello"), std::string(), std::string(10000, 'x'),
                           make_tar({file("f", std::string(5000, 'x'))}).substr(0, 2000)}) {
    const auto done = unpack(junk, target_);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::kInvalid);
  }
}

TEST_F(Unpack, WritesWhiteoutsAsOverlayfsHasThem) {
  expect_unpacks({file("etc/.wh.gone", ""), folder("var"), file("var/.wh..wh..opq", ""), file("x/.wh.y", ""),
                  file("x/y", "new"), file(".wh.z", ""), folder("z"), folder("w"), file(".wh.w", ""),
                  file(".wh.v", ""), file("v/inside", "1"), file(".wh..wh.aufs", "")});
  EXPECT_TRUE(is_whiteout(at("etc/gone")));
  EXPECT_EQ(attribute(at("var"), "trusted.overlay.opaque"), "y");
  EXPECT_EQ(content(at("x/y")), "new");
  for (const auto* folder : {"z", "w", "v"})
    EXPECT_EQ(attribute(at(folder), "trusted.overlay.opaque"), "y") << folder;
  EXPECT_FALSE(fs::exists(at("etc/.wh.gone")));
  EXPECT_FALSE(fs::exists(at(".wh..wh.aufs")));
}

TEST_F(Unpack, OverlayfsShowsTheLayersAsOneTree) {
  const auto lower = scratch_ / "lower";
  const auto upper = scratch_ / "upper";
  const auto merged = scratch_ / "merged";
  ASSERT_TRUE(unpack(make_tar({file("etc/gone", "1"), file("etc/kept", "1"), file("var/old", "1")}), lower));
  ASSERT_TRUE(unpack(make_tar({file("etc/.wh.gone", ""), file("var/.wh..wh..opq", ""), file("var/new", "2")}),
                     upper));
  fs::create_directory(merged);
  const auto options = "lowerdir=" + upper + ":" + lower;
  if (::mount("overlay", merged.c_str(), "overlay", MS_RDONLY, options.c_str()) != 0)
    GTEST_SKIP() << "overlayfs cannot be mounted here: " << std::strerror(errno);
  EXPECT_FALSE(fs::exists(merged + "/etc/gone"));
  EXPECT_TRUE(fs::exists(merged + "/etc/kept"));
  EXPECT_FALSE(fs::exists(merged + "/var/old"));
  EXPECT_TRUE(fs::exists(merged + "/var/new"));
  EXPECT_EQ(::umount2(merged.c_str(), MNT_DETACH), 0);
}

/// Everything below `folder` but `without`, with sizes and times: to see that nothing else was touched.
std::string snapshot(const std::string& folder, const std::string& without) {
  std::vector<std::string> lines;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    if (it->path() == without) {
      it.disable_recursion_pending();
      continue;
    }
    const auto info = stat_of(it->path());
    lines.push_back(it->path().string() + " " + std::to_string(info.st_size) + " " +
                    std::to_string(info.st_ctim.tv_nsec) + " " + std::to_string(info.st_nlink));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

rc::Gen<Item> any_item() {
  const auto part =
      rc::gen::element<std::string>("a", "b", "..", ".", "", "link", ".wh.a", ".wh..wh..opq", "/");
  const auto path = rc::gen::map(rc::gen::container<std::vector<std::string>>(part), [](const auto& parts) {
    std::string joined;
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 5); ++i)
      joined += (i > 0 ? "/" : "") + parts[i];
    return joined;
  });
  return rc::gen::build<Item>(
      rc::gen::set(&Item::path, path), rc::gen::set(&Item::link, path),
      rc::gen::set(&Item::type, rc::gen::element('0', '1', '2', '5', '5', '6', '3', 'Z')),
      rc::gen::set(&Item::mode, rc::gen::inRange(0U, 010000U)));
}

TEST_F(Unpack, RandomEntriesNeverLeaveTheFolder) {
  fs::create_directories(scratch_ / "a/b");
  testing::write(scratch_ / "a/b/link", "outside");
  testing::write(scratch_ / "b", "outside");
  const auto before = snapshot(scratch_.path(), target_);
  int whole = 0;
  EXPECT_TRUE(rc::check("every write stays below the target", [&] {
    fs::remove_all(target_);
    const auto items = *rc::gen::container<std::vector<Item>>(any_item());
    if (unpack(make_tar(items), target_)) ++whole;
    RC_ASSERT(snapshot(scratch_.path(), target_) == before);
  }));
  EXPECT_GT(whole, 0) << "no layer at all was taken: the property was not tried";
}

TEST_F(Unpack, MutatedTarsNeverLeaveTheFolder) {
  const auto tar = make_tar({folder("a"), file("a/f", std::string(700, 'x')), symlink("link", "a"),
                             hard_link("h", "a/f"), file("a/.wh.b", "")});
  testing::write(scratch_ / "outside", "safe");
  const auto before = snapshot(scratch_.path(), target_);
  EXPECT_TRUE(rc::check("no crash, no write outside", [&] {
    fs::remove_all(target_);
    auto mutated = tar;
    const auto changes = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
        rc::gen::pair(rc::gen::inRange<std::size_t>(0, tar.size()), rc::gen::arbitrary<char>()));
    for (const auto& [offset, value] : changes) mutated[offset] = value;
    mutated.resize(*rc::gen::inRange<std::size_t>(0, mutated.size() + 1));
    (void)unpack(mutated, target_);
    RC_ASSERT(snapshot(scratch_.path(), target_) == before);
  }));
}

}  // namespace
}  // namespace drover::image
