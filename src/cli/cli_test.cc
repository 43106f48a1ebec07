#include "cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/testing/cli_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using testing::drover;
using ::testing::HasSubstr;

TEST(Usage, UnknownWordsAreNamedWithWhatWasProbablyMeant) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"run", "--gpu", "1", "--", "true"}, "did you mean '--gpus'?"},
      {{"gpsu"}, "did you mean 'gpus'?"},
      {{"ps", "--jsno"}, "did you mean '--json'?"},
      {{"serve", "--sate", "/tmp"}, "did you mean '--state'?"},
      {{"files", "lss", "x"}, "did you mean 'ls'?"}};
  for (const auto& [words, hint] : wrong) {
    const auto ran = drover(words);
    EXPECT_EQ(ran.status, 64) << words.front();
    EXPECT_THAT(ran.err, HasSubstr(hint));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Usage, MissingArgumentsAndHelp) {
  EXPECT_EQ(drover({}).status, 64);
  EXPECT_EQ(drover({"logs"}).status, 64);
  const auto help = drover({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--gpus"));
  EXPECT_THAT(drover({"help"}).out, HasSubstr("explain"));
  EXPECT_THAT(drover({"help", "run"}).out, HasSubstr("--gpus"));
  EXPECT_THAT(drover({"help", "runn"}).err, HasSubstr("did you mean 'run'?"));
  EXPECT_THAT(drover({"help", "app", "scale"}).out, HasSubstr("Usage: drover app scale [OPTIONS] APP N\n"));
  EXPECT_THAT(drover({"exec", "--help"}).out, HasSubstr("Usage: drover exec [OPTIONS] TASK [COMMAND...]\n"));
  EXPECT_THAT(drover({"version"}).out, HasSubstr("1.2.3"));
  EXPECT_EQ(json::parse(drover({"version", "--json"}).out).at("version"), "1.2.3");
}

TEST(Usage, NothingIsMeantThatIsOnlyALittleAlike) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"nonsense"}, {"ps", "--fxrt"}, {"queue", "hots"}, {"run", "--sort", "1"}, {"files", "x"}})
    EXPECT_THAT(drover(words).err, ::testing::Not(HasSubstr("did you mean"))) << words.back();
}

TEST(Usage, TheParsersSentencesAreDroversOwn) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"logs"}, "'drover logs' needs a TASK"},
      {{"init"}, "'drover init' needs one of app, job, task, gang"},
      {{"app"}, "'drover app' needs one more word: ls, inspect, scale"},
      {{"run", "--gpus"}, "--gpus needs a value"},
      {{"run", "--gpus", "1", "--gpus", "2"}, "--gpus is given more than once"},
      {{"run", "-m", "1G", "--mem", "2G"}, "--mem is given more than once"},
      {{"run", "--containerizer", "podman", "true"}, "--containerizer: 'podman' is none of oci, docker"},
      {{"serve", "--placement", "best"}, "--placement: 'best' is none of pack, spread, fragmentation"},
      {{"serve", "--objects"}, "--objects: it is about a cluster, and tasks run on this machine"},
      {{"logs", "--tail", "many", "x"}, "--tail: 'many' is not"},
      {{"logs", "--tail", "-1", "x"}, "--tail: '-1' is not between 0 and 1000000"},
      {{"app", "scale", "web", "many"}, "'many' is not between 0 and 10000"},
      {{"app", "scale", "web", "99999"}, "'99999' is not between 0 and 10000"}};
  for (const auto& [words, sentence] : wrong) {
    const auto ran = drover(words);
    EXPECT_EQ(ran.status, 64);
    EXPECT_THAT(ran.err, HasSubstr("drover: " + sentence));
  }
}

TEST(Usage, EveryCommandHasAPlaceInTheHelp) {
  const auto help = drover({"--help"}).out;
  for (const auto* command :
       {"run", "ps", "apply", "queue", "image", "gpus", "serve", "kube", "completion", "help"})
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + command + " "));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("Others:")));
  const auto all = drover({"--help-all"}).out;
  for (const auto* word : {"\nrun\n", "\nfiles\n", "rollback", "--gpu-model"})
    EXPECT_THAT(all, HasSubstr(word));
}

TEST(Usage, RefusesValuesBeforeItAsksTheDaemon) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--gpus", "nan"}, "'nan'"},
      {{"--gpus", "1e9"}, "'1e9'"},
      {{"--gpus", "0x"}, "'0x'"},
      {{"--gpus", "2xA100,"}, "'2xA100,'"},
      {{"--gpus", "A100"}, "--gpus 2xA100"},
      {{"--gpus="}, "--gpus"},
      {{"--gpus", "2xA100", "--gpu-model", "T4"}, "--gpu-model: the models are named twice"},
      {{"--gpu-ecc", "maybe"}, "--gpu-ecc: 'maybe'"},
      {{"--constraint", "rack"}, "--constraint: 'rack'"},
      {{"--gang", "two"}, "--gang: 'two'"},
      {{"--gang", "99999999999999999999"}, "--gang: '99999999999999999999'"},
      {{"--gang", "500"}, "add --detach"},
      {{"--arrangement", "pack"}, "add --gang N"},
      {{"--priority", "high"}, "--priority: 'high'"},
      {{"--gpus", "many"}, "'many'"},
      {{"--gpus=-1"}, "'-1'"},
      {{"--mem", "plenty"}, "--mem: 'plenty'"},
      {{"--cpus", "0"}, "--cpus: '0'"},
      {{"--timeout", "soon"}, "--timeout: 'soon'"},
      {{"--env", "=x"}, "'=x'"},
      {{"--label", "x"}, "'x'"}};
  for (const auto& [options, words] : wrong) {
    std::vector<std::string> all = {"--socket", "/no/such/socket", "run"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "true"});
    const auto ran = drover(all);
    EXPECT_EQ(ran.status, 64) << options.front();
    EXPECT_THAT(ran.err, HasSubstr(words));
  }
  EXPECT_EQ(drover({"--socket", "/no/such/socket", "run"}).status, 64);
}

TEST(Usage, ADaemonThatIsNotThere) {
  const auto ran = drover({"--socket", "/no/such/socket", "ps"});
  EXPECT_EQ(ran.status, 69);
  EXPECT_THAT(ran.err,
              HasSubstr("Failed to reach the daemon at '/no/such/socket': No such file or directory"));
  EXPECT_THAT(ran.err, HasSubstr("drover serve"));
  EXPECT_EQ(drover({"--host", "nonsense", "ps"}).status, 64);
}

TEST(Serve, GetsItsOptions) {
  const auto ran = drover({"serve", "--state", "/s", "--socket", "/x", "--simulate", "k80"});
  EXPECT_EQ(ran.status, 69);
  EXPECT_THAT(ran.err, HasSubstr("/s /x k80 pack"));
}

TEST(Serve, TakesPlacementAndAttributes) {
  const auto ran = drover({"serve", "--placement", "spread", "--attribute", "rack=r7", "--attribute",
                           "rack=r8", "--attribute", "site=a=b"});
  EXPECT_THAT(ran.err, HasSubstr("spread rack=r7 rack=r8 site=a=b"));
  for (const auto& words : {std::vector<std::string>{"serve", "--attribute", "rack"},
                            {"serve", "--attribute", "=r7"},
                            {"serve", "--placement", "tight"}})
    EXPECT_EQ(drover(words).status, 64);
}

TEST(Doctor, SaysHowToMendAndFailsWhenSomethingIsMissing) {
  const auto ran = drover({"--socket", "/no/such/socket", "doctor"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("found    kernel   Linux\n"));
  EXPECT_THAT(ran.out, HasSubstr("missing  runtime  no runc\n"));
  EXPECT_THAT(ran.out, HasSubstr("→ install runc\n"));
  const auto checks = json::parse(drover({"--socket", "/no/such/socket", "doctor", "--json"}).out);
  EXPECT_EQ(checks.at("well"), false);
  EXPECT_EQ(checks.at("checks").back().at("name"), "daemon");
}

TEST(CliOverTcp, NeedsTheToken) {
  const std::string secret = "0123456789abcdef0123456789abcdef";
  api::ServerOptions options;
  options.listen = api::ListenAddress{"127.0.0.1", 0};
  options.credentials = {{"root", secret}};
  api::testing::ServerFixture server(options);
  const auto url = "http://" + to_string(*server.server().tcp_address());
  EXPECT_EQ(drover({"--host", url, "ps"}).status, 77);
  EXPECT_EQ(drover({"--host", url, "--token", secret, "ps"}).status, 0);
}

}  // namespace
}  // namespace drover::cli
