#include "kube/client/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/fake_tree.h"

namespace drover::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string kubeconfig_of(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: here\n"
         "contexts:\n- name: elsewhere\n  context: {cluster: x, user: y}\n"
         "- name: here\n  context: {cluster: c, user: u, namespace: team}\n"
         "clusters:\n- name: c\n  cluster: {" +
         cluster + "}\nusers:\n- name: u\n  user: {" + user + "}\n";
}

std::string refusal_of(const std::string& text) {
  const auto config = parse_kubeconfig(text, "the kubeconfig", "/etc/k");
  EXPECT_FALSE(config) << text;
  return config ? "" : to_string(config.error());
}

TEST(Kubeconfig, HasTheServerAndTheUserOfItsContext) {
  const auto config =
      parse_kubeconfig(kubeconfig_of("server: 'https://10.0.0.1:6443/', certificate-authority-data: " +
                                         encode_base64("the authority"),
                                     "client-certificate: pki/me.crt, client-key: /else/me.key, token: t"),
                       "the kubeconfig", "/etc/k");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(*config, (ServerConfig{.url = "https://10.0.0.1:6443",
                                   .authorities = {.text = "the authority"},
                                   .certificate = {.file = "/etc/k/pki/me.crt"},
                                   .key = {.file = "/else/me.key"},
                                   .token = {.text = "t"},
                                   .name_space = "team",
                                   .source = "the kubeconfig"}));
}

TEST(Kubeconfig, HasTheContextThatIsWanted) {
  const auto text =
      kubeconfig_of("server: 'https://a:1'", "token: t") + "- name: other\n  user: {token: u}\n";
  const auto with_another = [&](const std::string& wanted) {
    const std::string contexts = "contexts:\n";
    auto more = text;
    more.insert(more.find(contexts) + contexts.size(),
                "- name: there\n  context: {cluster: c, user: other, namespace: n}\n");
    return parse_kubeconfig(more, "the kubeconfig", "/etc/k", wanted);
  };
  EXPECT_EQ(with_another("")->token.text, "t");
  const auto there = with_another("there");
  ASSERT_TRUE(there) << to_string(there.error());
  EXPECT_EQ(there->token.text, "u");
  EXPECT_EQ(there->name_space, "n");
  const auto nowhere = with_another("nowhere");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(to_string(nowhere.error()), HasSubstr("there is no context 'nowhere'"));
}

TEST(Kubeconfig, OfATokenFileIsReadWhenItIsAsked) {
  FakeTree tree;
  tree.file("token", "first");
  const auto config = parse_kubeconfig(kubeconfig_of("server: 'https://[fd00::1]:6443'", "tokenFile: token"),
                                       "x", tree.root());
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(read_secret(config->token), "first");
  tree.file("token", "second");
  EXPECT_EQ(read_secret(config->token), "second");
}

TEST(Kubeconfig, OfNobodyIsAnonymous) {
  const auto config = parse_kubeconfig(
      "{current-context: a, contexts: [{name: a, context: {cluster: c}}], "
      "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001'}}]}",
      "x", "/");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_TRUE(config->token.empty());
  EXPECT_EQ(config->name_space, "default");
}

TEST(Kubeconfig, IsRefusedWhereItCouldMeanSomethingElse) {
  const std::string server = "server: 'https://a:1'";
  EXPECT_THAT(refusal_of(kubeconfig_of(server, "exec: {command: aws}")),
              AllOf(HasSubstr("exec"), HasSubstr("runs no login programs")));
  EXPECT_THAT(refusal_of(kubeconfig_of(server + ", insecure-skip-tls-verify: true", "token: t")),
              HasSubstr("insecure-skip-tls-verify"));
  EXPECT_THAT(refusal_of(kubeconfig_of(server + ", proxy-url: 'http://p'", "token: t")),
              HasSubstr("HTTPS_PROXY"));
  EXPECT_THAT(refusal_of(kubeconfig_of(server, "username: u, password: hidden")),
              AllOf(HasSubstr("password"), Not(HasSubstr("hidden"))));
  EXPECT_THAT(refusal_of(kubeconfig_of(server, "token: t, as: somebody")), HasSubstr("as"));
  EXPECT_THAT(refusal_of(kubeconfig_of(server, "client-certificate: x")), HasSubstr("needs its key"));
  EXPECT_THAT(refusal_of(kubeconfig_of(server + ", certificate-authority-data: '%%'", "token: t")),
              HasSubstr("not base64"));
}

TEST(Kubeconfig, KeepsCredentialsOffOpenNetworks) {
  for (const auto* url : {"http://10.0.0.1:8080", "http://127.evil.com", "http://localhost.evil.com",
                          "ftp://a", "https://", "https://u:p@a", "https://a?b", "a:6443", ""})
    EXPECT_THAT(refusal_of(kubeconfig_of("server: '" + std::string(url) + "'", "token: t")),
                HasSubstr("server"))
        << url;
}

TEST(Kubeconfig, ThatIsIncompleteSaysWhatIsMissing) {
  EXPECT_THAT(refusal_of(""), HasSubstr("holds no fields"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("names no context"));
  EXPECT_THAT(refusal_of("{current-context: a}"), HasSubstr("there is no context 'a'"));
  EXPECT_THAT(refusal_of("{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}]}"),
              AllOf(HasSubstr("there is no cluster 'c'"), HasSubstr("there is no user 'u'")));
  EXPECT_THAT(refusal_of("{current-context: a"), HasSubstr("line"));
}

TEST(Config, OfAPodIsItsServiceAccount) {
  FakeTree tree;
  tree.file("ca.crt", "a").file("token", "t\n").file("namespace", "drover");
  const auto config =
      find_config({.service_host = "10.96.0.1", .service_port = "443", .account_folder = tree.root()});
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->url, "https://10.96.0.1:443");
  EXPECT_EQ(config->name_space, "drover");
  EXPECT_EQ(config->token, (Secret{.file = tree / "token"}));
  const auto ipv6 =
      find_config({.service_host = "fd00::1", .service_port = "443", .account_folder = tree.root()});
  EXPECT_EQ(ipv6->url, "https://[fd00::1]:443");
}

TEST(Config, SaysWhatItLacks) {
  const auto nothing = find_config({});
  ASSERT_FALSE(nothing);
  EXPECT_THAT(to_string(nothing.error()), HasSubstr("--kubeconfig"));
  FakeTree tree;
  const auto tokenless =
      find_config({.service_host = "h", .service_port = "1", .account_folder = tree.root()});
  ASSERT_FALSE(tokenless);
  EXPECT_THAT(to_string(tokenless.error()), HasSubstr("automountServiceAccountToken"));
  const auto several = find_config({.kubeconfig = "/a:/b"});
  ASSERT_FALSE(several);
  EXPECT_THAT(to_string(several.error()), HasSubstr("--flatten"));
}

TEST(Config, IsTheKubeconfigWhereOneIsNamed) {
  FakeTree tree;
  tree.file("k/config", kubeconfig_of("server: 'https://a:1', certificate-authority: ca.crt", "token: t"));
  const auto config =
      find_config({.kubeconfig = tree / "k/config", .service_host = "h", .service_port = "1"});
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->authorities.file, tree / "k/ca.crt");
  EXPECT_EQ(config->source, "kubeconfig '" + (tree / "k/config") + "'");
}

TEST(Kubeconfig, IsRefusedWhenWhatItNamesIsEmpty) {
  const auto config =
      parse_kubeconfig("current-context: here\ncontexts:\n- name: here\n", "the file", "/etc");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().path, "/contexts/0/context");
}

}  // namespace
}  // namespace drover::kube
