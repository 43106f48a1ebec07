// Names for daemons: what is kept of them, and which one a command speaks to.

#include "cli/contexts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "base/fd.h"
#include "base/files.h"
#include "cli/testing/cli_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ContextsTest, AreReadAsTheyWereWritten) {
  Contexts contexts;
  contexts.used = "lab";
  contexts.all["lab"] = {"", "https://lab.example.com", "secret", "/etc/lab.pem"};
  contexts.all["near"] = {"/run/near.sock", "", "", ""};
  contexts.all["cluster"] = {.token = "secret",
                             .kubeconfig = "/etc/admin.kubeconfig",
                             .kube_context = "eu",
                             .name_space = "gpus",
                             .service = "plane:http"};
  const auto read = decode_contexts(encode(contexts));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->used, contexts.used);
  EXPECT_EQ(read->all, contexts.all);
}

TEST(ContextsTest, WrongFilesAreRefusedWithThePlace) {
  const std::vector<std::pair<json, std::string>> wrong = {
      {{{"used", "lab"}}, "/used"},
      {{{"contexts", {{"a b", {{"host", "x"}}}}}}, "/contexts/a b"},
      {{{"contexts", {{"none", {{"host", "x"}}}}}}, "/contexts/none"},
      {{{"contexts", {{"lab", json::object()}}}}, "/contexts/lab"},
      {{{"contexts", {{"lab", {{"host", "x"}, {"socket", "y"}}}}}}, "/contexts/lab"},
      {{{"contexts",
         {{"lab", {{"host", "x"}, {"kubeconfig", "y"}, {"namespace", "n"}, {"service", "s:1"}}}}}},
       "/contexts/lab"},
      {{{"contexts", {{"lab", {{"kubeconfig", "y"}, {"namespace", "n"}, {"service", "../s:1"}}}}}},
       "/contexts/lab/service"},
      {{{"contexts", {{"lab", {{"hots", "x"}}}}}}, "/contexts/lab/hots"},
      {{{"contexts", 7}}, "/contexts"},
      {{{"format", 2}}, "/format"}};
  for (const auto& [value, path] : wrong) {
    const auto read = decode_contexts(value);
    ASSERT_FALSE(read) << value;
    EXPECT_THAT(read.error().message + read.error().path, HasSubstr(path)) << value;
  }
}

/// With a daemon, and another one beside it.
class ContextCommandsTest : public testing::CliTest {
 protected:
  ContextCommandsTest() {
    std::filesystem::remove_all(folder_);
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    ::setenv("DROVER_SOCKET", "/nowhere.sock", 1);
    other_.on_strand([this] { other_.daemon().inventory_.simulation = "other"; });
  }
  ~ContextCommandsTest() override {
    for (const auto* name : {"XDG_CONFIG_HOME", "DROVER_SOCKET", "DROVER_CONTEXT"}) ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }
  /// Which daemon answers.
  std::string asked(std::vector<std::string> words = {}) {
    words.push_back("gpus");
    const auto ran = testing::drover(words);
    if (ran.status != 0) return ran.err;
    return ran.out.find("profile other") != std::string::npos ? "other" : "first";
  }
  std::string file() const { return folder_ + "/drover/contexts.json"; }

  const std::string folder_ = ::testing::TempDir() + "contexts-test";
  api::testing::ServerFixture other_;
};

TEST_F(ContextCommandsTest, SayWhichDaemonIsMeant) {
  ::unsetenv("DROVER_SOCKET");
  EXPECT_EQ(testing::drover({"context", "ls"}).out, "USED  NAME  DAEMON\n");
  EXPECT_EQ(ask({"context", "add", "here"}).out, "here: new, " + server_.socket() + "\n");
  EXPECT_EQ(testing::drover({"--socket", other_.socket(), "context", "add", "there", "--use"}).status, 0);
  EXPECT_EQ(asked(), "other");
  EXPECT_EQ(asked({"--context", "here"}), "first");
  EXPECT_EQ(asked({"--socket", server_.socket()}), "first") << "what the line says goes first";
  ::setenv("DROVER_CONTEXT", "here", 1);
  EXPECT_EQ(asked(), "first");
  EXPECT_EQ(asked({"--context", "there"}), "other");
  ::unsetenv("DROVER_CONTEXT");
  ::setenv("DROVER_SOCKET", server_.socket().c_str(), 1);
  EXPECT_EQ(asked(), "first") << "the environment goes before what is used for lack of better";
  ::unsetenv("DROVER_SOCKET");
  EXPECT_EQ(testing::drover({"context", "use", "here"}).out,
            "commands speak to " + server_.socket() + " now\n");
  EXPECT_EQ(asked(), "first");
  EXPECT_THAT(testing::drover({"context", "ls"}).out, HasSubstr("*     here   " + server_.socket()));
  EXPECT_EQ(testing::drover({"context", "rm", "here"}).out, "here: removed\n");
  EXPECT_THAT(testing::drover({"context", "ls"}).out, Not(HasSubstr("*")));
}

TEST_F(ContextCommandsTest, AreRefusedInWords) {
  EXPECT_THAT(asked({"--context", "lap"}), HasSubstr("There is no context 'lap'"));
  ASSERT_EQ(testing::drover({"--host", "https://lab.example.com", "context", "add", "lab"}).status, 0);
  const auto near = testing::drover({"--context", "lap", "ps"});
  EXPECT_EQ(near.status, 66);
  EXPECT_THAT(near.err, HasSubstr("did you mean 'lab'?"));
  EXPECT_EQ(testing::drover({"--context", "lab", "--socket", "/x", "ps"}).status, 64);
  EXPECT_EQ(testing::drover({"context", "use", "lap"}).status, 66);
  EXPECT_EQ(testing::drover({"context", "rm", "lap"}).status, 66);
  EXPECT_EQ(testing::drover({"--host", "lab:1", "context", "add", "x"}).status, 64);
  EXPECT_EQ(testing::drover({"--host", "http://x", "context", "add", "a b"}).status, 64);
  EXPECT_EQ(testing::drover({"--host", "http://x", "context", "add", "none"}).status, 64);
  ::unsetenv("DROVER_SOCKET");
  EXPECT_THAT(testing::drover({"context", "add", "x"}).err, HasSubstr("--host"));
}

TEST_F(ContextCommandsTest, KeepTokensToTheUser) {
  ASSERT_EQ(testing::drover({"--host", "http://x:1", "--token", "secret", "context", "add", "x"}).status, 0);
  struct stat status{};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_THAT(testing::drover({"context", "ls", "--json"}).out, Not(HasSubstr("secret")));
  ::chmod(file().c_str(), 0640);
  const auto open = testing::drover({"--context", "x", "ps"});
  EXPECT_EQ(open.status, 77);
  EXPECT_THAT(open.err, HasSubstr("chmod 600"));
  ::chmod(file().c_str(), 0600);
  ASSERT_TRUE(write_file(file(), "{", 0600));
  EXPECT_THAT(asked({"--context", "x"}), HasSubstr(file()));
  EXPECT_EQ(testing::drover({"context", "use", "x"}).status, 64) << "what cannot be read is not written over";
  EXPECT_EQ(read_file(file()).value(), "{");
  EXPECT_EQ(asked({"--socket", server_.socket()}), "first");
  EXPECT_EQ(testing::drover({"version"}).status, 0) << "what needs no daemon needs no context";
}

/// Hears what comes to a port of this machine, and answers what it is told to.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_.get(), any, size) != 0 || ::listen(socket_.get(), 8) != 0 ||
        ::getsockname(socket_.get(), any, &size) != 0)
      throw std::runtime_error("no port");
    url = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
  }
  /// What the next who comes says first.
  std::string hear(const std::string& answer = "") {
    const UniqueFd caller(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string text(4096, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::read(caller.get(), text.data(), text.size()), 0)));
    (void)write_all(caller.get(), answer, "the caller");
    return text;
  }
  std::string url;

 private:
  UniqueFd socket_;
};

TEST_F(ContextCommandsTest, ShowATokenToItsOwnDaemonOnly) {
  Listener daemon;
  ::unsetenv("DROVER_SOCKET");
  const auto heard = [&](std::vector<std::string> words) {
    std::string text;
    std::thread hearing([&] { text = daemon.hear(); });
    words.push_back("ps");
    EXPECT_NE(testing::drover(words).status, 0) << "it does not answer";
    hearing.join();
    return text;
  };
  ASSERT_EQ(testing::drover({"--host", daemon.url, "context", "add", "open"}).status, 0);
  ASSERT_EQ(testing::drover({"--host", daemon.url, "--token", "its-own", "context", "add", "closed"}).status,
            0);
  ::setenv("DROVER_TOKEN", "of-another", 1);
  EXPECT_THAT(heard({"--context", "open"}), AllOf(HasSubstr("GET /v1/tasks"), Not(HasSubstr("of-another"))));
  EXPECT_THAT(heard({"--context", "closed"}),
              AllOf(HasSubstr("Bearer its-own"), Not(HasSubstr("of-another"))));
  EXPECT_THAT(heard({"--context", "closed", "--token", "said"}), HasSubstr("Bearer said"));
  ::unsetenv("DROVER_TOKEN");
}

class ClusterContextTest : public ContextCommandsTest {
 protected:
  ClusterContextTest() {
    ::unsetenv("DROVER_SOCKET");
    std::filesystem::create_directories(folder_);
    EXPECT_TRUE(write_file(kubeconfig_, server_.url + "/prefix/", 0600));
  }
  /// What the API server hears when a command is given, and what comes of the command.
  std::pair<std::string, testing::Ran> ask_through(std::vector<std::string> words,
                                                   const std::string& answer = "") {
    std::string heard;
    std::thread hearing([&] { heard = server_.hear(answer); });
    words.push_back("ps");
    auto ran = testing::drover(words);
    hearing.join();
    return {heard, ran};
  }
  testing::Ran add(std::vector<std::string> more) {
    std::vector<std::string> words = {"context", "add", "cluster", "--kubeconfig", kubeconfig_};
    words.insert(words.end(), more.begin(), more.end());
    return testing::drover(words);
  }
  static std::string answer_of(const std::string& status, const std::string& body) {
    return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
  }

  Listener server_;
  const std::string kubeconfig_ = folder_ + "/kubeconfig";
};

TEST_F(ClusterContextTest, GoesThroughTheApiServerWithTwoSecrets) {
  EXPECT_EQ(add({"--token", "mine"}).out,
            fmt::format("cluster: new, drover/drover-control-plane:http by {}\n", kubeconfig_));
  const auto [heard, ran] = ask_through({"--context", "cluster"});
  EXPECT_THAT(
      heard,
      AllOf(
          HasSubstr("GET /prefix/api/v1/namespaces/drover/services/http:drover-control-plane:http/proxy/v1/"),
          HasSubstr("\r\nAuthorization: Bearer of-the-cluster\r\n"),
          HasSubstr("\r\nDrover-Authorization: Bearer mine\r\n")));
  ASSERT_EQ(add({"--token", "mine", "--kube-context", "-eu", "--namespace", "gpus", "--service", "plane:81"})
                .status,
            0);
  EXPECT_THAT(ask_through({"--context", "cluster"}).first,
              AllOf(HasSubstr("/namespaces/gpus/services/http:plane:81/proxy/v1/"),
                    HasSubstr("\r\nAuthorization: Bearer of-the-cluster-eu\r\n")));
}

TEST_F(ClusterContextTest, IsRefusedInWords) {
  EXPECT_THAT(add({}).err, HasSubstr("DROVER_TOKEN"));
  ASSERT_EQ(testing::drover({"--host", "http://x:1", "--token", "of-another", "context", "add", "x", "--use"})
                .status,
            0);
  EXPECT_THAT(add({}).err, HasSubstr("DROVER_TOKEN")) << "another daemon's token is not handed on";
  for (const auto* service : {"../x", "a/b", "a:b:c", "A", "a:", ":1"})
    EXPECT_EQ(add({"--token", "mine", "--service", service}).status, 64) << service;
  EXPECT_EQ(add({"--token", "mine", "--namespace", ".."}).status, 64);
  EXPECT_EQ(add({"--token", "mine", "--host", "http://x"}).status, 64);
  EXPECT_EQ(testing::drover({"context", "add", "y", "--token", "mine", "--kubeconfig", "/nowhere"}).status,
            66);
}

TEST_F(ClusterContextTest, NamesLeadNowhereElse) {
  ASSERT_EQ(add({"--token", "mine"}).status, 0);
  for (const auto* name : {"..", ".", "../queues/mine", "a/../../b"}) {
    const auto refused = testing::drover({"--context", "cluster", "rm", name});
    EXPECT_EQ(refused.status, 64) << name;
    EXPECT_THAT(refused.err, HasSubstr("does not pass the API server")) << name;
  }
}

TEST_F(ClusterContextTest, TellsWhoRefuses) {
  ASSERT_EQ(add({"--token", "mine"}).status, 0);
  const auto told = [&](const std::string& status, const std::string& body) {
    return ask_through({"--context", "cluster"}, answer_of(status, body)).second.err;
  };
  const std::string of_server = R"({"kind": "Status", "message": "it is so"})";
  EXPECT_THAT(told("401 Unauthorized", of_server), HasSubstr("what the kubeconfig shows"));
  EXPECT_THAT(told("403 Forbidden", of_server), AllOf(HasSubstr("it is so"), HasSubstr("-users")));
  EXPECT_THAT(told("404 Not Found", of_server), HasSubstr("controlPlane.enabled"));
  EXPECT_THAT(told("503 Service Unavailable", of_server), HasSubstr("kubectl get pods"));
  const std::string of_daemon = R"({"error": {"kind": "unauthenticated", "message": "The token is wrong"}})";
  EXPECT_THAT(told("401 Unauthorized", of_daemon), AllOf(HasSubstr("is wrong"), HasSubstr("DROVER_TOKEN")));
}

}  // namespace
}  // namespace drover::cli
