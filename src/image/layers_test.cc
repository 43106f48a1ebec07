#include "image/layers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "image/digest.h"
#include "image/fixtures.h"

namespace drover::image {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;
using ::testing::ElementsAre;
using testing::file;
using ::testing::HasSubstr;
using testing::make_tar;
using testing::TemporaryFolder;

class LayerStore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "unpacking gives files their owners, which only root can";
    fs::create_directory(scratch_ / "files");
    fs::create_directory(scratch_ / "layers");
    layers_ = open();
  }

  std::unique_ptr<Layers> open() const {
    auto proofs = Proofs::open(Directory::create(scratch_ / "proven").value());
    EXPECT_TRUE(proofs) << to_string(proofs.error());
    auto layers = Layers::open(Directory::open(scratch_ / "layers").value(),
                               Directory::create(scratch_ / "unsynced").value(), std::move(*proofs));
    EXPECT_TRUE(layers) << to_string(layers.error());
    return std::make_unique<Layers>(std::move(*layers));
  }
  /// Stores `packed` as a file and names it as a layer with this uncompressed content.
  LayerFile put(const std::string& packed, const std::string& tar) const {
    LayerFile layer{sha256_of(packed).substr(7), sha256_of(tar), sha256_of(packed)};
    testing::write(scratch_ / "files/" + layer.name, packed);
    return layer;
  }
  Result<std::string> acquire(Layers& layers, const LayerFile& layer) const {
    DROVER_TRY(const auto files, FolderFiles::open_folder(Reader(testing::this_user()), scratch_ / "files"));
    DROVER_TRY(const auto opened, files->open(layer.name));
    Allowance allowance(limits_, stop_.get_token());
    return layers.acquire(layer, opened, allowance);
  }
  bool is_ready(const LayerFile& layer) const {
    const auto files = FolderFiles::open_folder(Reader(testing::this_user()), scratch_ / "files").value();
    return layers_->is_ready(layer, files->open(layer.name).value());
  }
  std::vector<std::string> stored() const {
    return Directory::open(scratch_ / "layers").value().list().value();
  }
  /// What is known not to be on the disk yet.
  std::vector<std::string> unsynced() const {
    return Directory::open(scratch_ / "unsynced/" + boot_id().value()).value().list().value();
  }
  void expect_refused(const LayerFile& layer, const std::string& words) {
    const auto path = acquire(*layers_, layer);
    ASSERT_FALSE(path);
    EXPECT_THAT(to_string(path.error()), HasSubstr(words));
    EXPECT_TRUE(stored().empty()) << "something half-done was left behind";
    EXPECT_TRUE(unsynced().empty()) << "a note of no layer was left behind";
  }

  TemporaryFolder scratch_;
  std::string tar_ = make_tar({file("a", "text"), file("b", std::string(300'000, 'b'))});
  UnpackLimits limits_;
  std::stop_source stop_;
  std::unique_ptr<Layers> layers_;
};

TEST_F(LayerStore, UnpacksWhateverTheCompression) {
  for (const auto& packed : {testing::gzip(tar_), testing::zstd(tar_), tar_}) {
    fs::remove_all(scratch_ / "layers/" + sha256_of(tar_).substr(7));
    const auto layer = put(packed, tar_);
    const auto path = acquire(*layers_, layer);
    ASSERT_TRUE(path) << to_string(path.error());
    EXPECT_EQ(fs::file_size(*path + "/b"), 300'000U);
    EXPECT_THAT(stored(), ElementsAre(layer.diff_id.substr(7)));
  }
}

TEST_F(LayerStore, SeesThroughConcatenatedStreams) {
  const auto half = tar_.size() / 2;
  for (auto* const pack : {&testing::gzip, &testing::zstd}) {
    fs::remove_all(scratch_ / "layers/" + sha256_of(tar_).substr(7));
    const auto layer = put((*pack)(tar_.substr(0, half)) + (*pack)(tar_.substr(half)), tar_);
    const auto path = acquire(*layers_, layer);
    EXPECT_TRUE(path) << to_string(path.error());
  }
}

TEST_F(LayerStore, BytesAfterTheArchiveCountForTheDigest) {
  const auto padded = tar_ + std::string(100'000, '\0');
  EXPECT_TRUE(acquire(*layers_, put(testing::gzip(padded), padded)));
}

TEST_F(LayerStore, RefusesWrongDigests) {
  auto layer = put(testing::gzip(tar_), tar_);
  layer.diff_id = sha256_of("other");
  expect_refused(layer, "its uncompressed digest (diff_id) should be " + sha256_of("other"));
  layer = put(testing::gzip(tar_), tar_);
  layer.digest = sha256_of("other");
  expect_refused(layer, "its digest should be " + sha256_of("other"));
}

TEST_F(LayerStore, ATruncatedCopyIsADamagedLayer) {
  const auto whole = testing::gzip(make_tar({file("r", std::string(50'000, 'r')), file("s", "s")}));
  auto layer = put(whole, tar_);
  testing::write(scratch_ / "files/" + layer.name, std::string_view(whole).substr(0, whole.size() / 2));
  expect_refused(layer, "the layer is damaged: its digest");
}

TEST_F(LayerStore, TruncatedGzipWithARightDigestCannotBeDecompressed) {
  const auto whole = testing::gzip(tar_);
  expect_refused(put(whole.substr(0, whole.size() / 2), tar_), "it cannot be decompressed");
}

TEST_F(LayerStore, HostileEntriesLeaveNothingBehind) {
  const auto tar = make_tar({file("fine", "x"), file("../evil", "x")});
  expect_refused(put(testing::gzip(tar), tar), "entry '../evil' climbs out");
  EXPECT_FALSE(fs::exists(scratch_ / "layers/evil"));
}

TEST_F(LayerStore, ABombStopsAtTheLimit) {
  const auto bomb = std::string(1024, '\0') + std::string(50 << 20, '\0');
  limits_.bytes = 10 << 20;
  expect_refused(put(testing::gzip(bomb), bomb),
                 "more than 10 MiB when unpacked, the most that one may hold");
}

TEST_F(LayerStore, AFullDiskLeavesNothingBehind) {
  limits_.reserved_space = 1ULL << 60;
  expect_refused(put(testing::gzip(tar_), tar_), "are free where images are unpacked");
}

TEST_F(LayerStore, WhatIsCompressedTwiceIsRefused) {
  for (auto* const inner : {&testing::gzip, &testing::zstd})
    for (auto* const outer : {&testing::gzip, &testing::zstd})
      expect_refused(put((*outer)((*inner)(tar_)), tar_), "it is compressed more than once");
}

TEST_F(LayerStore, AHeaderWithoutEndIsRefused) {
  std::string sparse = make_tar({{.path = "holes", .type = 'S'}}).substr(0, 512);
  constexpr std::size_t kIsExtended = 482;  // of GNU's old map of holes
  sparse[kIsExtended] = 1;
  sparse.replace(257, 8, "ustar  \0"sv);
  for (int i = 0; i < 4; ++i) sparse.replace(386 + 24 * i, 24, "00000000000\00000000000000\0"sv);
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < sparse.size(); ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(sparse[i]);
  sparse.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  std::string map;
  for (int i = 0; i < 21; ++i) map += "00000000000\00000000000000\0"sv;
  map.resize(512, '\0');
  map[504] = 1;  // and another one follows
  while (sparse.size() < 10 << 20) sparse += map;
  expect_refused(put(testing::gzip(sparse), sparse), "a header of more than 8 MiB");
}

TEST_F(LayerStore, StopsWhenItIsToldTo) {
  stop_.request_stop();
  expect_refused(put(testing::gzip(tar_), tar_), "it was stopped");
}

TEST_F(LayerStore, OnlyWhoBringsALayerGetsIt) {
  const auto layer = put(testing::gzip(tar_), tar_);
  ASSERT_TRUE(acquire(*layers_, layer));
  // Another image claims the same diff_id for a file of its own.
  const auto own = make_tar({file("own", "x")});
  auto claim = put(testing::gzip(own), own);
  claim.diff_id = layer.diff_id;
  const auto path = acquire(*layers_, claim);
  ASSERT_FALSE(path);
  EXPECT_THAT(path.error().message, HasSubstr("diff_id"));
}

TEST_F(LayerStore, KnowsAFileAgainUntilItChanges) {
  const auto layer = put(testing::gzip(tar_), tar_);
  EXPECT_FALSE(is_ready(layer));
  ASSERT_TRUE(acquire(*layers_, layer));
  EXPECT_TRUE(is_ready(layer));
  layers_ = open();
  EXPECT_TRUE(is_ready(layer)) << "a restart of the daemon must not read all images again";
  testing::write(scratch_ / "files/" + layer.name, "changed");
  EXPECT_FALSE(is_ready(layer));
  EXPECT_FALSE(acquire(*layers_, layer));
  EXPECT_EQ(stored().size(), 1U) << "the stored layer is not the one that is damaged";
}

TEST_F(LayerStore, ForgetsProofsOfEarlierBoots) {
  fs::create_directories(scratch_ / "proven/earlier-boot");
  layers_ = open();
  EXPECT_FALSE(fs::exists(scratch_ / "proven/earlier-boot"));
}

TEST_F(LayerStore, ManyThreadsShareOneUnpacking) {
  const auto layer = put(testing::gzip(tar_), tar_);
  const auto other = open();  // as a second process would see it
  std::vector<std::string> paths(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < paths.size(); ++i)
    threads.emplace_back(
        [&, i] { paths[i] = acquire(i % 2 == 0 ? *layers_ : *other, layer).value_or("failed"); });
  for (auto& thread : threads) thread.join();
  for (const auto& path : paths) EXPECT_EQ(path, scratch_ / "layers/" + layer.diff_id.substr(7));
  EXPECT_THAT(stored(), ElementsAre(layer.diff_id.substr(7)));
}

TEST_F(LayerStore, AKilledUnpackingIsSweptAwayAndDoneAnew) {
  std::vector<testing::Item> items;
  for (int i = 0; i < 3'000; ++i) items.push_back(file("file" + std::to_string(i), "x"));
  const auto tar = make_tar(items);
  const auto layer = put(tar, tar);
  const auto hex = layer.diff_id.substr(7);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(acquire(*layers_, layer) ? 0 : 1);
  const auto partial = scratch_ / "layers/." + hex + ".partial";
  while (!fs::exists(partial + "/tree/file100") && ::waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::yield();
  ASSERT_EQ(::kill(child, SIGSTOP), 0);  // it holds its lock, and is not done before it is killed
  EXPECT_EQ(open()->is_ready(layer, {}), false);
  EXPECT_TRUE(fs::exists(partial)) << "what somebody works on must not be swept away";
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child was done before it could be killed";
  EXPECT_FALSE(fs::exists(scratch_ / "layers/" + hex));
  ASSERT_TRUE(fs::exists(partial));
  EXPECT_THAT(unsynced(), ElementsAre(hex)) << "the note comes before the layer";

  layers_ = open();
  EXPECT_TRUE(stored().empty());
  const auto path = acquire(*layers_, layer);
  ASSERT_TRUE(path) << to_string(path.error());
  EXPECT_TRUE(fs::exists(*path + "/file2999"));
  EXPECT_THAT(stored(), ElementsAre(hex));
}

TEST_F(LayerStore, AStopLeavesNothingThatIsNotOnTheDisk) {
  const auto layer = put(testing::gzip(tar_), tar_);
  ASSERT_TRUE(acquire(*layers_, layer));
  EXPECT_THAT(unsynced(), ElementsAre(layer.diff_id.substr(7))) << "nobody waits for the disk";
  layers_.reset();
  EXPECT_TRUE(unsynced().empty());
}

TEST_F(LayerStore, ALayerThatWasNotOnTheDiskWhenTheMachineWentDownComesAgain) {
  const auto layer = put(testing::gzip(tar_), tar_);
  const auto path = acquire(*layers_, layer).value();
  layers_.reset();
  fs::rename(scratch_ / "unsynced/" + boot_id().value(), scratch_ / "unsynced/earlier-boot");
  testing::write(scratch_ / "unsynced/earlier-boot/" + layer.diff_id.substr(7), "");
  testing::write(path + "/a", "");  // as file systems do

  layers_ = open();
  EXPECT_TRUE(stored().empty());
  EXPECT_FALSE(fs::exists(scratch_ / "unsynced/earlier-boot"));
  ASSERT_TRUE(acquire(*layers_, layer));
  EXPECT_EQ(fs::file_size(path + "/a"), 4U);
}

TEST_F(LayerStore, WhatADaemonThatDiedDidNotSyncTheNextOneDoes) {
  const auto layer = put(testing::gzip(tar_), tar_);
  ASSERT_TRUE(acquire(*layers_, layer));
  layers_.reset();
  const auto note = scratch_ / "unsynced/" + boot_id().value() + "/" + layer.diff_id.substr(7);
  testing::write(note, "");
  layers_ = open();
  EXPECT_THAT(stored(), ElementsAre(layer.diff_id.substr(7))) << "this boot has seen all of it";
  EXPECT_TRUE(fs::exists(note));
  layers_.reset();
  EXPECT_FALSE(fs::exists(note));
}

TEST_F(LayerStore, ALayerThatIsTakenAwayAndComesAgainIsNotTakenForSynced) {
  const auto layer = put(testing::gzip(tar_), tar_);
  ASSERT_TRUE(acquire(*layers_, layer));
  ASSERT_TRUE(layers_->discard(layer.diff_id));
  layers_.reset();
  EXPECT_THAT(unsynced(), ElementsAre(layer.diff_id.substr(7))) << "that it is away is not on the disk";
}

TEST_F(LayerStore, LeftoversOfACrashDoNotGetIntoTheLayer) {
  const auto layer = put(tar_, tar_);
  const auto partial = scratch_ / "layers/." + layer.diff_id.substr(7) + ".partial";
  fs::create_directories(partial + "/tree/leftover");
  const auto path = acquire(*layers_, layer);
  ASSERT_TRUE(path) << to_string(path.error());
  EXPECT_FALSE(fs::exists(*path + "/leftover"));
}

}  // namespace
}  // namespace drover::image
