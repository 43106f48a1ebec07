#include "image/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/process.h"
#include "image/digest.h"
#include "image/fixtures.h"

namespace drover::image {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::file;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LayoutBuilder;
using testing::make_tar;
using testing::tagged;
using testing::TemporaryFolder;
using testing::this_user;

const User kNobody{65534, 65534, {}, "nobody", "/"};

class ImageStore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "unpacking gives files their owners, which only root can";
    ::chmod(scratch_.path().c_str(), 0755);
    auto opened = Store::open(scratch_ / "images");
    ASSERT_TRUE(opened) << to_string(opened.error());
    store_.emplace(std::move(*opened));
    layout_.index({tagged(layout_.image({base_, top_}), "1.0")});
  }
  Result<Image> prepare(const std::string& reference, const User& user = this_user()) {
    return store_->prepare(reference, user);
  }
  void expect_refused(const std::string& reference, const std::string& words,
                      const User& user = this_user()) {
    const auto image = prepare(reference, user);
    ASSERT_FALSE(image) << reference;
    const auto said = to_string(image.error());
    EXPECT_THAT(said, HasSubstr(words));
    EXPECT_THAT(said, HasSubstr("Failed to prepare image '"));
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }
  std::string layer_path(const std::string& tar) const {
    return scratch_ / "images/layers/sha256/" + sha256_of(tar).substr(7);
  }
  void tar_of(const std::string& folder, const std::string& archive) {
    const auto done = run_command(
        {.arguments = {"tar", "-C", folder, "-cf", archive, "."}, .environment = minimal_environment()});
    ASSERT_TRUE(done && done->exit_status == 0);
  }
  /// Runs a tool; false when it failed, which is printed.
  static bool run(const std::vector<std::string>& arguments) {
    const auto done = run_command({.arguments = arguments, .environment = minimal_environment()});
    if (!done) ADD_FAILURE() << to_string(done.error());
    if (done && done->exit_status != 0) ADD_FAILURE() << arguments[0] << ": " << done->errors;
    return done && done->exit_status == 0;
  }

  TemporaryFolder scratch_;
  std::string base_ = make_tar({file("etc/os-release", "ID=test"), file("bin/sh", "x", 0755)});
  std::string top_ = make_tar({file("app", "x")});
  LayoutBuilder layout_{scratch_ / "layout"};
  std::optional<Store> store_;
};

TEST_F(ImageStore, PreparesALayout) {
  const auto reference = "oci:" + layout_.folder() + ":1.0";
  const auto image = prepare(reference);
  ASSERT_TRUE(image) << to_string(image.error());
  EXPECT_EQ(image->reference, reference);
  EXPECT_THAT(image->layers, ElementsAre(layer_path(base_), layer_path(top_)));
  EXPECT_THAT(image->config.command, ElementsAre("/bin/sh"));
  EXPECT_TRUE(fs::exists(image->layers[0] + "/etc/os-release"));
  struct stat info{};
  ASSERT_EQ(::stat((scratch_ / "images").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
}

TEST_F(ImageStore, TellsWhatItUnpacksOnce) {
  std::vector<std::string> told;
  const PrepareOptions report{.progress = [&](const std::string& sentence) { told.push_back(sentence); }};
  ASSERT_TRUE(store_->prepare("oci:" + layout_.folder(), this_user(), report));
  EXPECT_THAT(told, ElementsAre(HasSubstr("Unpacking layer 1 of 2"), HasSubstr("Unpacking layer 2 of 2")));
  told.clear();
  ASSERT_TRUE(store_->prepare("oci:" + layout_.folder(), this_user(), report));
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(ImageStore, FindsImagesByTheirNames) {
  fs::create_directories(scratch_ / "named/team");
  fs::rename(layout_.folder(), scratch_ / "named/team/app");
  auto store = Store::open(scratch_ / "more", {.named = scratch_ / "named"});
  ASSERT_TRUE(store);
  const auto image = store->prepare("team/app:1.0", this_user());
  ASSERT_TRUE(image) << to_string(image.error());
  EXPECT_EQ(image->reference, "team/app:1.0");
  EXPECT_EQ(image->layers.size(), 2U);
  const auto other = store->prepare("team/other", this_user(), {.pull = PullPolicy::kNever});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("it is not on this machine"));
  EXPECT_EQ(other.error().hint, "pull it: 'drover image pull team/other:latest'");
}

TEST_F(ImageStore, NamesOfTheFolderMayStandForSeveralImagesAndThoseOfRegistriesForOne) {
  auto fast = tagged(layout_.image({base_, top_}), "1.0");
  fast["annotations"]["dev.drover.variant.name"] = "fast";
  layout_.index({fast, tagged(layout_.image({base_}), "1.0")});
  fs::create_directories(scratch_ / "named/team");
  fs::rename(layout_.folder(), scratch_ / "named/team/app");
  auto store = Store::open(scratch_ / "more", {.named = scratch_ / "named"});
  ASSERT_TRUE(store);
  const auto variants = store->variants("team/app:1.0", this_user());
  ASSERT_TRUE(variants) << to_string(variants.error());
  ASSERT_EQ(variants->size(), 2U);
  EXPECT_EQ(variants->front().needs.name, "fast");
  EXPECT_EQ(store->prepare(variants->front().reference, this_user())->layers.size(), 2U);
  EXPECT_EQ(store->prepare(variants->back().reference, this_user())->layers.size(), 1U);
  EXPECT_THAT(store->variants("team/other:1.0", this_user()).value(), IsEmpty());
}

TEST_F(ImageStore, FindsOutWhatAPathIs) {
  EXPECT_EQ(prepare(layout_.folder())->layers.size(), 2U);
  tar_of(layout_.folder(), scratch_ / "oci.tar");
  EXPECT_EQ(prepare(scratch_ / "oci.tar:1.0")->layers.size(), 2U);
  EXPECT_EQ(prepare("oci-archive:" + (scratch_ / "oci.tar"))->layers.size(), 2U);
  fs::create_directories(scratch_ / "root/usr");
  EXPECT_THAT(prepare(scratch_ / "root")->layers, ElementsAre(scratch_ / "root"));
  EXPECT_THAT(prepare("rootfs:" + (scratch_ / "root/../root"))->layers, ElementsAre(scratch_ / "root"));
  const nlohmann::json config = {{"rootfs", {{"diff_ids", {sha256_of(top_)}}}}};
  const nlohmann::json manifest = {{{"Config", "c"}, {"Layers", {"l"}}, {"RepoTags", {"app:1"}}}};
  testing::write(scratch_ / "docker.tar", make_tar({file("c", config.dump()), file("l", top_),
                                                    file("manifest.json", manifest.dump())}));
  EXPECT_THAT(prepare(scratch_ / "docker.tar")->layers, ElementsAre(layer_path(top_)));
  EXPECT_THAT(prepare("docker-archive:" + (scratch_ / "docker.tar:app:1"))->layers,
              ElementsAre(layer_path(top_)));
}

TEST_F(ImageStore, ALayerThatComesTwiceIsMountedOnce) {
  layout_.index({layout_.image({top_, base_, top_})});
  EXPECT_THAT(prepare("oci:" + layout_.folder())->layers, ElementsAre(layer_path(base_), layer_path(top_)));
}

TEST_F(ImageStore, RefusesWhatIsNoImage) {
  testing::write(scratch_ / "text", "hello");
  fs::create_directory(scratch_ / "empty");
  expect_refused("oci:/does/not/exist", "No such file");
  expect_refused(scratch_ / "text", "is not an image archive");
  expect_refused("oci:" + (scratch_ / "text"), "is a file, not a folder");
  expect_refused("docker-archive:" + layout_.folder(), "is a folder, not an archive");
  expect_refused("oci:" + (scratch_ / "empty"), "is not an OCI image layout");
  expect_refused("rootfs:" + (scratch_ / "empty"), "is an empty folder");
  expect_refused("rootfs:/proc/self", "belongs to the kernel");
  expect_refused("/dev/null", "neither a file nor a folder");
  expect_refused("Busy Box", "is no name of a registry");
}

TEST_F(ImageStore, ReadsWithTheRightsOfTheUser) {
  const auto reference = "oci:" + layout_.folder();
  EXPECT_TRUE(prepare(reference, kNobody));
  const auto index = layout_.folder() + "/index.json";
  ::chmod(index.c_str(), 0600);
  expect_refused(reference, "Permission denied", kNobody);
  ::chmod(index.c_str(), 0644);
  for (const auto& blob : fs::directory_iterator(layout_.folder() + "/blobs/sha256"))
    ::chmod(blob.path().c_str(), 0600);
  expect_refused(reference, "let 'nobody' read it", kNobody);
  fs::create_directories(scratch_ / "root/usr");
  ::chmod((scratch_ / "root").c_str(), 0700);
  expect_refused("rootfs:" + (scratch_ / "root"), "Permission denied", kNobody);
}

TEST_F(ImageStore, AnUnpackedLayerIsNotGivenToWhoCannotReadItsFile) {
  ASSERT_TRUE(prepare("oci:" + layout_.folder()));
  const auto file = layout_.blob_path(sha256_of(testing::gzip(base_)));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0) << file;
  expect_refused("oci:" + layout_.folder(), "layer 1 of 2", kNobody);
}

TEST_F(ImageStore, RemovesWhatACrashLeft) {
  const auto layers = scratch_ / "images/layers/sha256";
  fs::create_directories(layers + "/.abc.partial/tree/deep");
  store_.reset();
  ASSERT_TRUE(Store::open(scratch_ / "images"));
  EXPECT_TRUE(fs::is_empty(layers));
}

TEST_F(ImageStore, MutatedLayoutsAreRefusedOrWhole) {
  std::vector<std::string> documents = {layout_.folder() + "/index.json", layout_.folder() + "/oci-layout"};
  for (const auto& blob : fs::directory_iterator(layout_.folder() + "/blobs/sha256"))
    documents.push_back(blob.path());
  std::sort(documents.begin(), documents.end());
  EXPECT_TRUE(rc::check("no crash, one sentence, nothing half-done", [&] {
    const auto path = *rc::gen::elementOf(documents);
    std::ifstream in(path);
    const std::string original{std::istreambuf_iterator<char>(in), {}};
    auto mutated = original;
    mutated[*rc::gen::inRange<std::size_t>(0, mutated.size())] = *rc::gen::arbitrary<char>();
    testing::write(path, mutated);
    const auto image = prepare("oci:" + layout_.folder());
    testing::write(path, original);
    if (!image) RC_ASSERT(to_string(image.error()).find('\n') == std::string::npos);
    for (const auto& entry : fs::directory_iterator(scratch_ / "images/layers/sha256"))
      RC_ASSERT(entry.path() == layer_path(base_) || entry.path() == layer_path(top_));
  }));
}

TEST_F(ImageStore, ReadsWhatSkopeoWrites) {
  if (!find_program("skopeo")) GTEST_SKIP() << "skopeo is not installed";
  const auto source = "oci:" + layout_.folder() + ":1.0";
  const std::vector<std::pair<std::string, std::string>> copies = {
      {"oci:" + (scratch_ / "copy:v2"), "oci:" + (scratch_ / "copy:v2")},
      {"docker-archive:" + (scratch_ / "docker.tar:tool:v2"),
       "docker-archive:" + (scratch_ / "docker.tar:tool:v2")},
      {"oci-archive:" + (scratch_ / "oci.tar:v2"), scratch_ / "oci.tar"},
  };
  for (const auto& [target, reference] : copies) {
    ASSERT_TRUE(run({"skopeo", "--insecure-policy", "copy", source, target}));
    const auto image = prepare(reference);
    ASSERT_TRUE(image) << to_string(image.error());
    EXPECT_THAT(image->layers, ElementsAre(layer_path(base_), layer_path(top_))) << reference;
  }
}

TEST_F(ImageStore, ReadsWhatUmociWrites) {
  if (!find_program("umoci")) GTEST_SKIP() << "umoci is not installed";
  const auto layout = scratch_ / "umoci";
  const auto name = layout + ":made";
  const auto bundle = scratch_ / "bundle";
  ASSERT_TRUE(run({"umoci", "init", "--layout", layout}));
  ASSERT_TRUE(run({"umoci", "new", "--image", name}));
  ASSERT_TRUE(run({"umoci", "unpack", "--image", name, bundle}));
  fs::create_directories(bundle + "/rootfs/etc");
  testing::write(bundle + "/rootfs/etc/one", "1");
  testing::write(bundle + "/rootfs/etc/two", "2");
  ASSERT_TRUE(run({"umoci", "repack", "--refresh-bundle", "--image", name, bundle}));
  fs::remove(bundle + "/rootfs/etc/two");
  ASSERT_TRUE(run({"umoci", "repack", "--image", name, bundle}));
  ASSERT_TRUE(run({"umoci", "config", "--image", name, "--config.label", "a=b", "--config.user", "7"}));
  const auto image = prepare("oci:" + name);
  ASSERT_TRUE(image) << to_string(image.error());
  ASSERT_EQ(image->layers.size(), 2U);
  EXPECT_TRUE(fs::exists(image->layers[0] + "/etc/two"));
  EXPECT_EQ(fs::status(image->layers[1] + "/etc/two").type(), fs::file_type::character) << "a whiteout";
  EXPECT_EQ(image->config.user, "7");
  EXPECT_EQ(image->config.labels.at("a"), "b");
}

}  // namespace
}  // namespace drover::image
