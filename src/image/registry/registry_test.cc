// What registries say and are told: challenges, credentials, and where both may go.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "image/registry/challenge.h"
#include "image/registry/docker_config.h"
#include "image/registry/endpoint.h"
#include "image/registry/token.h"

namespace drover::image {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Parameters = std::map<std::string, std::string>;

TEST(Challenges, AreReadAsRegistriesWriteThem) {
  const auto found = parse_challenges(
      R"(Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a:pull,push", )"
      R"(Basic realm="a \"quoted\" one")");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].scheme, "bearer");
  EXPECT_EQ(found[0].parameters, (Parameters{{"realm", "https://auth.docker.io/token"},
                                             {"service", "registry.docker.io"},
                                             {"scope", "repository:a:pull,push"}}));
  EXPECT_EQ(found[1].scheme, "basic");
  EXPECT_EQ(found[1].parameters, (Parameters{{"realm", "a \"quoted\" one"}}));
  EXPECT_EQ(parse_challenges("BASIC REALM=x")[0].parameters, (Parameters{{"realm", "x"}}));
  EXPECT_EQ(parse_challenges("Negotiate, Basic realm = \"x\"").size(), 2U);
}

TEST(Challenges, OfAnyKindEnd) {
  for (const auto* text :
       {"", ",,,", "=", "\"", "Bearer realm=\"never ends", "a=b", "Bearer realm=\"x\\", "\x01\xff"})
    EXPECT_LE(parse_challenges(text).size(), 1U) << text;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "scheme a=b, ";
  EXPECT_EQ(parse_challenges(many).size(), 16U);
}

std::string config_of(const json& entries) {
  return json{{"auths", entries}}.dump();
}

TEST(DockerConfig, HasCredentialsInEveryForm) {
  const auto secret = encode_base64("alice:s3:cret");
  for (const auto& [config, host] : std::vector<std::pair<std::string, std::string>>{
           {config_of({{"a.b:5000", {{"auth", secret}}}}), "a.b:5000"},
           {config_of({{"https://a.b:5000/v1/", {{"auth", secret}}}}), "a.b:5000"},
           {config_of({{"https://index.docker.io/v1/", {{"auth", secret}}}}), "docker.io"},
           {config_of({{"a.b", {{"username", "alice"}, {"password", "s3:cret"}}}}), "a.b"}}) {
    const auto login = find_login(config, host);
    ASSERT_TRUE(login) << config;
    EXPECT_EQ(login->user, "alice") << config;
    EXPECT_EQ(login->password, "s3:cret") << config;
  }
  const auto token = find_login(config_of({{"a.b", {{"auth", ""}, {"identitytoken", "t"}}}}), "a.b");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->identity_token, "t");
  EXPECT_FALSE(token->is_anonymous());
}

TEST(DockerConfig, OfOtherRegistriesSaysNothing) {
  const auto secret = encode_base64("alice:s3cret");
  for (const auto* host : {"b.c", "a.b:5001", "evil.a.b", "a.b.evil"}) {
    const auto login = find_login(config_of({{"a.b", {{"auth", secret}}}}), host);
    ASSERT_TRUE(login);
    EXPECT_TRUE(login->is_anonymous()) << host;
    EXPECT_EQ(login->note, "");
  }
}

TEST(DockerConfig, TellsOfHelpersThatAreNotRun) {
  const auto helper = find_login(R"({"credHelpers": {"a.b": "gcloud"}})", "a.b");
  ASSERT_TRUE(helper);
  EXPECT_TRUE(helper->is_anonymous());
  EXPECT_THAT(helper->note, HasSubstr("helper program"));
  const auto store = find_login(R"({"auths": {"a.b": {}}, "credsStore": "pass"})", "a.b");
  ASSERT_TRUE(store);
  EXPECT_THAT(store->note, HasSubstr("helper program"));
}

TEST(DockerConfig, ThatIsDamagedIsNotQuoted) {
  for (const auto* text : {"", "[]", "{\"auths\": {\"a.b\": {\"password\": \"s3cret\" \"", "null"}) {
    const auto login = find_login(text, "a.b");
    ASSERT_FALSE(login) << text;
    EXPECT_THAT(to_string(login.error()), Not(HasSubstr("s3cret")));
  }
  for (const auto& entry : {json(3), json("x"), json{{"auth", 3}}, json{{"auth", "%"}},
                            json{{"username", "a\r\nX-Evil: 1"}, {"password", "p"}}}) {
    const auto login = find_login(config_of({{"a.b", entry}}), "a.b");
    ASSERT_TRUE(login) << entry;
    EXPECT_TRUE(login->is_anonymous()) << entry;
  }
}

TEST(Endpoint, TakesUrlsApart) {
  EXPECT_EQ(origin_of("https://A.b/x?y"), (Origin{true, "a.b", 443}));
  EXPECT_EQ(origin_of("http://a.b:81"), (Origin{false, "a.b", 81}));
  EXPECT_EQ(origin_of("HTTPS://[::1]:5000/x"), (Origin{true, "[::1]", 5000}));
  for (const auto* url :
       {"", "a.b", "file:///etc/passwd", "ftp://a.b", "https://", "https://user:pw@a.b/", "https://a:b/",
        "https://a:0/", "https://a:99999/", "http://a@b", "https://[::1/", "http://a\\b/"})
    EXPECT_FALSE(origin_of(url)) << url;
}

TEST(Endpoint, OnlyThisMachineIsPlain) {
  const PlainRegistries plain({"lab:5000", "old.example.com"});
  for (const auto* host : {"localhost", "localhost:5000", "127.0.0.1:5000", "127.9.9.9", "[::1]:5000",
                           "lab:5000", "old.example.com", "old.example.com:81"})
    EXPECT_FALSE(registry_origin(host, plain).secure) << host;
  for (const auto* host : {"docker.io", "a.b", "128.0.0.1:5000", "localhost.evil.com", "127.evil.com",
                           "lab:5001", "[::2]:5000", "10.0.0.1"})
    EXPECT_TRUE(registry_origin(host, plain).secure) << host;
  EXPECT_EQ(registry_origin("docker.io", plain).host, "registry-1.docker.io");
}

TEST(Endpoint, NothingGoesFromTlsToPlain) {
  const PlainRegistries plain;
  const Origin far{true, "a.b", 443};
  const Origin here{false, "localhost", 5000};
  EXPECT_TRUE(may_go_on(far, {true, "cdn.c", 443}, plain));
  EXPECT_FALSE(may_go_on(far, {false, "a.b", 80}, plain));
  EXPECT_FALSE(may_go_on(far, here, plain));
  EXPECT_TRUE(may_go_on(here, {false, "127.0.0.1", 81}, plain));
  EXPECT_FALSE(may_go_on(here, {false, "169.254.169.254", 80}, plain));
}

TEST(Endpoint, LoginsStayInTheirDomain) {
  const PlainRegistries plain;
  const auto shown = [&](const char* registry, const char* realm) {
    return may_see_login({true, registry, 443}, {true, realm, 443}, plain);
  };
  EXPECT_TRUE(shown("ghcr.io", "ghcr.io"));
  EXPECT_TRUE(shown("registry-1.docker.io", "auth.docker.io"));
  EXPECT_TRUE(shown("registry.gitlab.com", "gitlab.com"));
  EXPECT_FALSE(shown("registry-1.docker.io", "auth.docker.io.evil.com"));
  EXPECT_FALSE(shown("registry.gitlab.com", "evilgitlab.com"));
  EXPECT_FALSE(shown("ghcr.io", "evil.io"));
  EXPECT_FALSE(shown("10.1.2.3", "10.9.2.3"));
  EXPECT_FALSE(shown("ghcr.io", "io"));
  EXPECT_FALSE(may_see_login({true, "a.b", 443}, {false, "a.b", 80}, plain));
}

TEST(Token, IsAskedForWithTheScopeThatIsNeeded) {
  const auto open = make_token_request("https://a.b/t?x=1", "the & service", "team/tool", {});
  EXPECT_EQ(open.url, "https://a.b/t?x=1&scope=repository%3Ateam%2Ftool%3Apull&service=the%20%26%20service");
  EXPECT_TRUE(open.headers.empty());
  EXPECT_FALSE(open.follow_redirects);
  const auto basic = make_token_request("https://a.b/t", "", "r", {.user = "alice", .password = "pw"});
  EXPECT_THAT(basic.headers, ::testing::ElementsAre("Authorization: Basic " + encode_base64("alice:pw")));
  const auto refresh = make_token_request("https://a.b/t", "s", "r", {.identity_token = "i&d"});
  EXPECT_EQ(refresh.url, "https://a.b/t");
  EXPECT_THAT(refresh.content.value_or(HttpContent()).bytes, HasSubstr("refresh_token=i%26d&scope="));
  EXPECT_TRUE(refresh.headers.empty());
}

TEST(Token, ThatCouldNotStandInAHeaderIsRefused) {
  EXPECT_EQ(read_token(R"({"token": "a.b"})"), "a.b");
  EXPECT_EQ(read_token(R"({"access_token": "c"})"), "c");
  for (const auto* text :
       {"", "{}", "[]", R"({"token": 3})", R"({"token": "a\r\nb"})", R"({"token": "a b"})"})
    EXPECT_FALSE(read_token(text)) << text;
}

TEST(RegistryMessage, IsFitForATerminal) {
  EXPECT_EQ(registry_message(R"({"errors": [{"code": "X", "message": "no\u001b[2J"}]})"), "no\\x1b[2J");
  for (const auto* text :
       {"", "<html>", "{}", R"({"errors": []})", R"({"errors": [3]})", R"({"errors": {}})"})
    EXPECT_EQ(registry_message(text), "") << text;
}

}  // namespace
}  // namespace drover::image
