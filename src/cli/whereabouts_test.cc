#include "cli/whereabouts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fake_tree.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Whereabouts at(const std::string& folder) {
  Whereabouts caller;
  caller.folder = folder;
  caller.environment = {{"PATH", "/venv/bin:/bin"}, {"LANG", "de_DE.UTF-8"}, {"AWS_SECRET_ACCESS_KEY", "x"}};
  return caller;
}

json request(json fields = json::object()) {
  json body = {{"command", {"train"}}, {"env", json::object()}};
  body.update(fields);
  return body;
}

Placed placed(const Whereabouts& caller, json fields = json::object()) {
  auto result = start_at(request(std::move(fields)), caller);
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? *result : Placed{};
}

std::string refusal(const Whereabouts& caller, json fields) {
  const auto result = start_at(request(std::move(fields)), caller);
  EXPECT_FALSE(result);
  return result ? "" : to_string(result.error());
}

TEST(Whereabouts, OnlyWhatFindsProgramsAndLanguageAndTimeGoAlong) {
  Variables all;
  for (const auto* name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX",
                           "CONDA_DEFAULT_ENV", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ"})
    all[name] = "value";
  auto more = all;
  for (const auto* name :
       {"HOME", "USER", "SHELL", "LD_PRELOAD", "DROVER_TOKEN", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN",
        "SSH_AUTH_SOCK", "TERM", "CUDA_VISIBLE_DEVICES", "PATH_OF_SECRET", "XLC_ALL"})
    more[name] = "value";
  EXPECT_EQ(passed_on(more), all);
  EXPECT_EQ(passed_on({{"PATH", "/caf\xe9"}, {"TZ", "UTC"}}), (Variables{{"TZ", "UTC"}}));
}

TEST(Whereabouts, ATaskWithoutAnImageStartsWhereItsCallerStands) {
  const auto made = placed(at("/home/ann/project"));
  EXPECT_EQ(made.body.at("working_directory"), "/home/ann/project");
  EXPECT_EQ(made.body.at("env"), json({{"PATH", "/venv/bin:/bin"}, {"LANG", "de_DE.UTF-8"}}));
  EXPECT_EQ(made.note, "");
}

TEST(Whereabouts, WhatIsSaidGoesFirst) {
  const auto made =
      placed(at("/home/ann"), {{"env", {{"PATH", "/own"}, {"A", "b"}}}, {"working_directory", "/data"}});
  EXPECT_EQ(made.body.at("working_directory"), "/data");
  EXPECT_EQ(made.body.at("env"), json({{"A", "b"}, {"LANG", "de_DE.UTF-8"}, {"PATH", "/own"}}));
}

TEST(Whereabouts, ARelativeFolderIsRelativeToWhereTheCallerStands) {
  const auto folder = [](const char* relative) {
    return placed(at("/home/ann"), {{"working_directory", relative}}).body.at("working_directory");
  };
  EXPECT_EQ(folder("."), "/home/ann");
  EXPECT_EQ(folder("runs/7/"), "/home/ann/runs/7");
  EXPECT_EQ(folder("../bob"), "/home/bob");
  EXPECT_EQ(folder("../../../.."), "/");
}

TEST(Whereabouts, WhatIsNotThereIsRefusedWhereItCanBeSeen) {
  FakeTree here;
  here.file("data/one", "");
  here.file("file", "");
  const auto refused = [&](const json& fields, const Whereabouts& caller) {
    const auto found = find_here(fields, caller);
    return found ? "" : to_string(found.error());
  };
  const auto volume = [&](const std::string& name) {
    return json{{"volumes", {{{"host_path", here.root() + name}, {"container_path", "/project"}}}}};
  };
  const auto folder = [&](const std::string& path) { return json{{"working_directory", path}}; };
  const auto caller = at(here.root());
  EXPECT_EQ(refused(volume("/data"), caller) + refused(volume("/file"), caller), "");
  EXPECT_EQ(refused(folder(here.root() + "/data"), caller), "");
  EXPECT_EQ(refused(volume("/dat"), caller),
            fmt::format("--volume: There is no '{0}/dat' (did you mean '{0}/data'?)", here.root()));
  EXPECT_EQ(
      refused(folder(here.root() + "/nowhere"), caller),
      fmt::format("--workdir: There is no '{}/nowhere' (make it first, or check its spelling)", here.root()));
  EXPECT_EQ(refused(folder(here.root() + "/file"), caller),
            fmt::format("--workdir: '{}/file' is not a folder (name the folder that it is in)", here.root()));

  auto inside = volume("/data");
  inside["working_directory"] = "/project/src";
  EXPECT_EQ(refused(inside, caller), "") << "what is in a volume is not looked for here";
  EXPECT_EQ(refused(folder("/dev/fd/x"), caller), "");
  auto later = folder(here.root() + "/nowhere");
  later["after"] = {"another"};
  EXPECT_EQ(refused(later, caller), "");
  auto image = folder("/nowhere");
  image["image"] = "trainer";
  EXPECT_EQ(refused(image, caller), "");
  auto far = caller;
  far.elsewhere = "the daemon is far away";
  EXPECT_EQ(refused(volume("/nowhere"), far), "");
}

TEST(Whereabouts, WithAnImageNothingGoesAlong) {
  const auto made = placed(at("/home/ann"), {{"image", "trainer"}});
  EXPECT_FALSE(made.body.contains("working_directory"));
  EXPECT_EQ(made.body.at("env"), json::object());
  EXPECT_EQ(made.note, "");
  EXPECT_EQ(refusal(at("/home/ann"), {{"image", "trainer"}, {"working_directory", "src"}}),
            "--workdir: 'src' is a relative path, and with an image the folder is one of the image's (write "
            "the path "
            "from '/' on)");
}

TEST(Whereabouts, WhereTheDaemonSeesOtherFilesNothingGoesAlong) {
  auto caller = at("/home/ann");
  caller.elsewhere = "the daemon is far away";
  const auto made = placed(caller);
  EXPECT_FALSE(made.body.contains("working_directory"));
  EXPECT_EQ(made.body.at("env"), json::object());
  EXPECT_EQ(made.note, "starts in its sandbox: the daemon is far away");
  EXPECT_THAT(refusal(caller, {{"working_directory", "."}}), HasSubstr("the daemon is far away"));
  EXPECT_EQ(placed(caller, {{"working_directory", "/data"}}).note, "");
}

TEST(Whereabouts, WhereItsUserCannotGoATaskStartsInItsSandbox) {
  auto caller = at("/root/project");
  caller.closed = "'ann' cannot enter '/root/project': Permission denied";
  const auto made = placed(caller);
  EXPECT_FALSE(made.body.contains("working_directory"));
  EXPECT_EQ(made.note, "starts in its sandbox: 'ann' cannot enter '/root/project': Permission denied");
  for (const auto* own : {"/dev/shm/x", "/proc/1", "/sys"})
    EXPECT_THAT(placed(at(own)).note, HasSubstr("is another folder in its container")) << own;
  EXPECT_EQ(placed(at("/device")).note, "");
  EXPECT_THAT(placed(at("/caf\xe9")).note, HasSubstr("not UTF-8"));
}

TEST(Whereabouts, WithWhatIsBroughtIntoItsSandboxATaskStartsThere) {
  EXPECT_EQ(placed(at("/srv"), {{"fetch", {"https://example.org/data.tgz"}}}).note,
            "starts in its sandbox: what --fetch brings lies there");
  const auto with_volume = [](const char* place) {
    return placed(at("/srv"), {{"volumes", json::array({{{"host_path", "/x"}, {"container_path", place}}})}});
  };
  EXPECT_EQ(with_volume("data").note, "starts in its sandbox: the volume 'data' lies there");
  EXPECT_EQ(with_volume("/data").body.at("working_directory"), "/srv");
  const auto said = placed(at("/srv"), {{"fetch", {"a"}}, {"working_directory", "."}});
  EXPECT_EQ(said.body.at("working_directory"), "/srv");
}

TEST(Whereabouts, AnotherUserGetsNothingOfTheEnvironment) {
  auto caller = at("/srv");
  caller.same_user = false;
  const auto made = placed(caller);
  EXPECT_EQ(made.body.at("working_directory"), "/srv");
  EXPECT_EQ(made.body.at("env"), json::object());
}

}  // namespace
}  // namespace drover::cli
