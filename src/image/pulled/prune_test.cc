#include "image/pulled/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "image/digest.h"
#include "image/fixtures.h"
#include "image/store.h"

namespace drover::image {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::file;
using ::testing::IsEmpty;
using testing::make_tar;
using testing::tagged;
using testing::TemporaryFolder;
using testing::this_user;

constexpr std::uint64_t kAll = UINT64_MAX;

/// Images that lie as if they had been pulled, each with a layer of its own.
class RoomTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "unpacking gives files their owners, which only root can";
    open();
    for (const std::string tag : {"a", "b", "c"}) {
      layout_.index({tagged(layout_.image({layer_of(tag)}), tag)});
      const auto loaded = store_->load("oci:" + layout_.folder() + ":" + tag, tag, this_user(), {}, {});
      ASSERT_TRUE(loaded) << to_string(loaded.error());
    }
    come_from_a_registry({"a", "b", "c"});
  }
  void open() {
    StoreOptions options;
    options.layers_in_use = [this]() -> Result<std::vector<std::vector<std::string>>> {
      if (meanwhile_) std::exchange(meanwhile_, {})();
      return in_use_;
    };
    auto opened = Store::open(scratch_ / "images", options);
    ASSERT_TRUE(opened) << to_string(opened.error());
    store_.emplace(std::move(*opened));
  }
  /// Pulled one after the other, long ago.
  void come_from_a_registry(const std::vector<std::string>& tags) {
    const auto path = scratch_ / "images/pulled/index.json";
    auto index = nlohmann::json::parse(read_file(path).value());
    for (auto& manifest : index["manifests"]) {
      auto& notes = manifest["annotations"];
      const auto name = notes["org.opencontainers.image.ref.name"].get<std::string>();
      for (std::size_t i = 0; i < tags.size(); ++i) {
        if (name != parse_registry_name(tags[i])->canonical()) continue;
        notes["io.drover.from"] = "registry";
        notes["io.drover.pulled-at"] = "2020-01-0" + std::to_string(i + 1) + "T00:00:00.000Z";
      }
    }
    testing::write(path, index.dump());
    open();
  }
  static std::string layer_of(const std::string& tag) { return make_tar({file("app", tag)}); }
  std::string layer_path(const std::string& tag) const {
    return scratch_ / "images/layers/sha256/" + digest_hex(sha256_of(layer_of(tag))).value();
  }
  std::vector<std::string> make_room(std::uint64_t bytes, std::set<NameOfUser> named = {},
                                     TimePoint unused_since = wall_clock() + std::chrono::hours(1)) {
    const auto pruned = store_->make_room({bytes, std::move(named), unused_since});
    EXPECT_TRUE(pruned) << to_string(pruned.error());
    return pruned ? pruned->names : std::vector<std::string>{"an error"};
  }
  Result<Image> prepare(const std::string& tag) {
    return store_->prepare(tag, this_user(), {.pull = PullPolicy::kNever});
  }
  static NameOfUser named(const std::string& reference) { return {this_user().uid, reference}; }

  TemporaryFolder scratch_;
  testing::LayoutBuilder layout_{scratch_ / "layout"};
  std::vector<std::vector<std::string>> in_use_;
  std::function<void()> meanwhile_;  ///< once, when a removal has begun
  std::optional<Store> store_;
};

TEST_F(RoomTest, TheLongestUnusedGoesFirstAndNoMoreThanIsNeeded) {
  ASSERT_TRUE(prepare("a"));
  EXPECT_THAT(make_room(0), IsEmpty());
  EXPECT_THAT(make_room(1), ElementsAre("b:latest"));
  EXPECT_FALSE(fs::exists(layer_path("b")));
  EXPECT_TRUE(fs::exists(layer_path("c")));
  open();
  EXPECT_THAT(make_room(1), ElementsAre("c:latest")) << "what was used when outlives a restart";
  EXPECT_TRUE(prepare("a"));
  EXPECT_THAT(make_room(kAll), ElementsAre("a:latest"));
  EXPECT_FALSE(prepare("a"));
}

TEST_F(RoomTest, WhatIsUsedOrNamedOrNewStays) {
  in_use_ = {{layer_path("a")}};
  auto lease = prepare("b");
  ASSERT_TRUE(lease);
  EXPECT_THAT(make_room(kAll, {named("docker.io/library/c:latest")}), IsEmpty());
  EXPECT_THAT(make_room(kAll, {}, parse_time("2019-12-31T00:00:00.000Z").value()), IsEmpty());
  EXPECT_THAT(make_room(kAll, {named("another")}), ElementsAre("c:latest"));
  lease = prepare("b");
  in_use_.clear();
  EXPECT_THAT(make_room(kAll), ElementsAre("a:latest"));
  EXPECT_TRUE(fs::exists(layer_path("b")));
}

TEST_F(RoomTest, WhatWasLoadedStays) {
  layout_.index({tagged(layout_.image({layer_of("d")}), "d")});
  ASSERT_TRUE(store_->load("oci:" + layout_.folder() + ":d", "d", this_user(), {}, {}));
  EXPECT_THAT(make_room(kAll), ElementsAre("a:latest", "b:latest", "c:latest"));
  EXPECT_TRUE(prepare("d")) << "nobody could bring it again";
}

TEST_F(RoomTest, LayersOfFilesGoUnlessWorkNamesThem) {
  layout_.index({tagged(layout_.image({layer_of("x")}), "x"), tagged(layout_.image({layer_of("y")}), "y")});
  const auto x = "oci:" + layout_.folder() + ":x", y = "oci:" + layout_.folder() + ":y";
  ASSERT_TRUE(store_->prepare(x, this_user()));
  ASSERT_TRUE(store_->prepare(y, this_user()));
  const std::set<NameOfUser> work = {named("a"), named("b"), named("c"), named(x)};
  EXPECT_THAT(make_room(kAll, work, wall_clock() - std::chrono::minutes(1)), IsEmpty());
  EXPECT_TRUE(fs::exists(layer_path("y")));
  open();
  EXPECT_THAT(make_room(kAll, work), IsEmpty());
  EXPECT_TRUE(fs::exists(layer_path("x")));
  EXPECT_FALSE(fs::exists(layer_path("y")));
}

TEST_F(RoomTest, ALaunchThatBeginsMeanwhileFindsItsImageWhole) {
  meanwhile_ = [this] { ASSERT_TRUE(prepare("a")); };
  EXPECT_THAT(make_room(kAll), ElementsAre("b:latest", "c:latest"));
  EXPECT_TRUE(fs::exists(layer_path("a"))) << "its task may have written down by now that it has it";
  EXPECT_TRUE(prepare("a"));
}

TEST_F(RoomTest, APullThatBeginsMeanwhileKeepsWhatItFound) {
  layout_.index({tagged(layout_.image({layer_of("a"), layer_of("new")}), "new")});
  meanwhile_ = [this] {
    ASSERT_TRUE(store_->load("oci:" + layout_.folder() + ":new", "new", this_user(), {}, {}));
  };
  EXPECT_THAT(make_room(kAll), ElementsAre("a:latest", "b:latest", "c:latest"));
  EXPECT_TRUE(fs::exists(layer_path("a")));
  const auto image = prepare("new");
  ASSERT_TRUE(image) << to_string(image.error());
  EXPECT_TRUE(fs::exists(image->layers[0] + "/app"));
}

TEST(Uses, TheOldestOfVeryManyIsDropped) {
  const TemporaryFolder scratch;
  const auto uses = Uses::open(Directory::open(scratch.path()).value()).value();
  const auto digest = sha256_of("it");
  for (std::size_t i = 0; i < Uses::kMost + 7; ++i) uses->note({0, std::to_string(i)}, {digest});
  uses->note({0, "a root folder"}, {});
  EXPECT_EQ(Directory::open(scratch.path())->list()->size(), Uses::kMost);
  EXPECT_THAT(uses->digests_of({{0, std::to_string(Uses::kMost)}}), ElementsAre(digest));
  EXPECT_THAT(uses->digests_of({{1, std::to_string(Uses::kMost)}}), IsEmpty());
  EXPECT_THAT(Uses::open(Directory::open(scratch.path()).value()).value()->digests_of({{0, "5000"}}),
              ElementsAre(digest));
}

}  // namespace
}  // namespace drover::image
