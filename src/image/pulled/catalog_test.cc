#include "image/pulled/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "image/fixtures.h"
#include "image/pulled/blobs.h"
#include "image/pulled/keyed_locks.h"
#include "image/pulled/leases.h"
#include "image/pulled/progress.h"

namespace drover::image {
namespace {

using testing::TemporaryFolder;

std::string some_digest(char digit) {
  return "sha256:" + std::string(64, digit);
}

NamedImage image_of(const std::string& name, char digit, bool everybody, std::set<uid_t> users) {
  NamedImage image;
  image.name = parse_registry_name(name).value();
  image.manifest.media_type = "application/vnd.oci.image.manifest.v1+json";
  image.manifest.digest = some_digest(digit);
  image.manifest.size = 7;
  image.everybody = everybody;
  image.users = std::move(users);
  return image;
}

class CatalogTest : public ::testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void reopen() {
    auto opened = Catalog::open(Directory::open(scratch_.path()).value());
    ASSERT_TRUE(opened) << to_string(opened.error());
    catalog_ = std::move(*opened);
  }
  /// The digit of the digest that the name means to the user; '-' for none.
  char meaning_of(const std::string& name, uid_t uid) const {
    const auto image = catalog_->find(parse_registry_name(name).value(), uid);
    return image ? image->manifest.digest.back() : '-';
  }
  void put(const NamedImage& image) {
    const auto done = catalog_->put(image);
    ASSERT_TRUE(done) << to_string(done.error());
  }

  TemporaryFolder scratch_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTest, ANameMayMeanOneImageToOneUserAndAnotherToTheRest) {
  put(image_of("tool", 'a', true, {1}));
  put(image_of("tool", 'b', false, {2}));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(meaning_of("tool", 0), 'a');
    EXPECT_EQ(meaning_of("tool:latest", 2), 'b');
    EXPECT_EQ(meaning_of("docker.io/library/tool", 3), 'a');
    EXPECT_EQ(meaning_of("tool:1", 3), '-');
    reopen();
  }
}

TEST_F(CatalogTest, WhatTookCredentialsIsNotEvenForRoot) {
  put(image_of("a.b/tool", 'a', false, {5}));
  EXPECT_EQ(meaning_of("a.b/tool", 0), '-');
  put(image_of("a.b/tool", 'a', false, {6}));
  EXPECT_EQ(meaning_of("a.b/tool", 5), 'a');
  EXPECT_EQ(meaning_of("a.b/tool", 6), 'a');
  put(image_of("a.b/tool", 'b', false, {6}));  // the name moved on, as he saw it
  EXPECT_EQ(meaning_of("a.b/tool", 5), 'a');
  EXPECT_EQ(meaning_of("a.b/tool", 6), 'b');
  put(image_of("a.b/tool", 'c', true, {6}));
  EXPECT_EQ(meaning_of("a.b/tool", 5), 'a');
  EXPECT_EQ(meaning_of("a.b/tool", 6), 'c');
  EXPECT_EQ(meaning_of("a.b/tool", 7), 'c');
}

TEST_F(CatalogTest, NamesAreRemovedByThoseWhoMay) {
  const auto name = parse_registry_name("tool").value();
  put(image_of("tool", 'a', true, {1}));
  put(image_of("tool", 'a', true, {2}));
  EXPECT_EQ(testing::refusal_of(catalog_->remove(name, 1)), ErrorKind::kPermissionDenied);
  put(image_of("tool", 'b', false, {1}));
  EXPECT_TRUE(catalog_->remove(name, 1));
  EXPECT_EQ(meaning_of("tool", 1), 'a');
  EXPECT_TRUE(catalog_->remove(name, 0));
  EXPECT_EQ(meaning_of("tool", 1), '-');
  EXPECT_EQ(testing::refusal_of(catalog_->remove(name, 0)), ErrorKind::kNotFound);
  put(image_of("tool", 'a', true, {3}));
  EXPECT_TRUE(catalog_->remove(name, 3)) << "nobody else has pulled it";
}

/// As daemons before wrote it, without saying in which format.
TEST_F(CatalogTest, TheFirstFormatIsRead) {
  std::filesystem::copy_file(DROVER_SOURCE_DIR "/tests/data/formats/1/images.json", scratch_ / "index.json");
  reopen();
  EXPECT_EQ(meaning_of("tool", 7), 'a');
  EXPECT_EQ(meaning_of("example.org/team/tool:2", 1000), 'b');
  EXPECT_EQ(meaning_of("example.org/team/tool:2", 7), '-');
  EXPECT_EQ(catalog_->list().at(0).bytes, 4096U);
}

TEST_F(CatalogTest, ANewerFormatIsNotGuessedAt) {
  put(image_of("tool", 'a', true, {1}));
  auto text = read_file(scratch_ / "index.json").value();
  const std::string known = R"("io.drover.format":"1")";
  ASSERT_NE(text.find(known), std::string::npos) << text;
  text.replace(text.find(known), known.size(), R"("io.drover.format":"99")");
  testing::write(scratch_ / "index.json", text);
  const auto opened = Catalog::open(Directory::open(scratch_.path()).value());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, ::testing::HasSubstr("a newer Drover's; this one knows 1"));
}

TEST_F(CatalogTest, ADamagedFileIsNotPassedOver) {
  put(image_of("tool", 'a', true, {1}));
  for (const auto* text : {"", "{", R"({"manifests": [{"digest": "sha256:00", "size": 1}]})",
                           R"({"manifests": [{"digest": "sha256:)"}) {
    testing::write(scratch_ / "index.json", text);
    const auto opened = Catalog::open(Directory::open(scratch_.path()).value());
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().kind, ErrorKind::kCorrupt);
    EXPECT_THAT(opened.error().hint, ::testing::HasSubstr("move it aside"));
  }
}

TEST(Blobs, BelongToThoseWhoBroughtThem) {
  const TemporaryFolder scratch;
  const auto blobs = Blobs::open(Directory::open(scratch.path()).value()).value();
  const auto digest = some_digest('a');
  auto partial = blobs.open_partial(digest, "1000").value();
  EXPECT_EQ(partial.size, 0U);
  ASSERT_TRUE(write_all(partial.file.get(), "12345", "it"));
  EXPECT_EQ(blobs.open_partial(digest, "1000")->size, 5U);
  EXPECT_EQ(blobs.open_partial(digest, kEverybody)->size, 0U)
      << "what one user has begun, no other goes on with";
  ASSERT_TRUE(blobs.finish(partial, digest, "1000"));
  EXPECT_TRUE(blobs.contains(digest));
  EXPECT_TRUE(blobs.may_use(digest, 1000));
  EXPECT_FALSE(blobs.may_use(digest, 0));
  blobs.allow(digest, kEverybody);
  EXPECT_TRUE(blobs.may_use(digest, 0));
  blobs.note_known_as(digest, some_digest('b'));
  EXPECT_TRUE(blobs.is_known_as(digest, some_digest('b')));
  EXPECT_FALSE(blobs.is_known_as(digest, some_digest('c')));
  ASSERT_TRUE(blobs.remove(digest));
  EXPECT_FALSE(blobs.may_use(digest, 1000)) << "the next one must bring it";
  EXPECT_FALSE(blobs.is_known_as(digest, some_digest('b')));
}

TEST(Leases, KeepWhatWasLeasedDuringASweep) {
  Leases leases;
  const auto removed = [](const Leases::Sweep& sweep, const std::string& name) {
    bool gone = false;
    sweep.remove_if_free(name, [&] { gone = true; });
    return gone;
  };
  auto before = leases.take({"a", "b"});
  auto again = leases.take({"a"});
  {
    const auto sweep = leases.sweep();
    EXPECT_FALSE(removed(sweep, "a"));
    EXPECT_TRUE(removed(sweep, "c"));
    leases.take({"d"}).reset();
    EXPECT_FALSE(removed(sweep, "d")) << "it may have been written down meanwhile";
    before.reset();
    EXPECT_FALSE(removed(sweep, "b"));
  }
  const auto sweep = leases.sweep();
  EXPECT_FALSE(removed(sweep, "a"));
  EXPECT_TRUE(removed(sweep, "b"));
  EXPECT_TRUE(removed(sweep, "d"));
}

TEST(KeyedLocks, AStopEndsTheWait) {
  KeyedLocks locks;
  std::stop_source source;
  const auto held = locks.lock("a", {}).value();
  EXPECT_TRUE(locks.lock("b", {}));
  source.request_stop();
  EXPECT_EQ(testing::refusal_of(locks.lock("a", source.get_token())), ErrorKind::kUnavailable);
}

TEST(PullProgress, IsToldInWords) {
  using State = LayerProgress::State;
  PullProgress progress{"redis:7", {}};
  EXPECT_EQ(in_words(progress), "pulling redis:7");
  progress.layers = {{"a", 10 << 20, 10 << 20, State::kDone, true},
                     {"b", 100 << 20, 40 << 20, State::kDownloading, false},
                     {"c", 28 << 20, 0, State::kWaiting, false}};
  EXPECT_EQ(in_words(progress), "pulling redis:7: 1 of 3 layers, 40 of 128 MiB");
}

}  // namespace
}  // namespace drover::image
