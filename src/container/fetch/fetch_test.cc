#include "container/fetch/fetch.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "container/oci_fixture.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

class FetchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/drover-fetch-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = static_cast<char*>(folder);
    fs::permissions(folder_, fs::perms(0755));
    fs::create_directory(folder_ + "/sandbox");
    std::ofstream(folder_ + "/file") << "content";
    plan_.executable = fs::read_symlink("/proc/self/exe");
  }
  void TearDown() override { fs::remove_all(folder_); }

  Status fetch(const std::vector<workload::Fetch>& files, uid_t uid = ::geteuid(),
               std::stop_token stop = {}) {
    const auto sandbox = Directory::open(folder_ + "/sandbox");
    EXPECT_EQ(::chown(sandbox->path().c_str(), uid, uid), 0);
    return fetch_all(
        plan_, files, *sandbox, User{uid, uid, {}, "somebody", "/"},
        [this](const std::string& step) { steps_.push_back(step); }, stop);
  }

  std::string content(const std::string& name) const {
    std::ifstream file(folder_ + "/sandbox/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  FetchPlan plan_;
  std::string folder_;
  std::vector<std::string> steps_;
};

TEST_F(FetchTest, BringsAFileOfTheMachine) {
  const auto done = fetch({{.uri = "file://" + folder_ + "/file", .executable = true},
                           {.uri = folder_ + "/file", .output_file = "deep/down/name"}});
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(content("file"), "content");
  EXPECT_EQ(fs::status(folder_ + "/sandbox/file").permissions(), fs::perms(0755));
  EXPECT_EQ(content("deep/down/name"), "content");
  EXPECT_EQ(steps_, (std::vector<std::string>{"fetching file", "fetching deep/down/name"}));
}

TEST_F(FetchTest, ReadsWithTheRightsOfItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  fs::permissions(folder_ + "/file", fs::perms(0600));
  const auto refused = fetch({{.uri = folder_ + "/file"}}, kNobody);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_NE(refused.error().message.find(folder_ + "/file"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_ + "/sandbox"));
  fs::permissions(folder_ + "/file", fs::perms(0644));
  ASSERT_TRUE(fetch({{.uri = folder_ + "/file"}}, kNobody));
  struct stat info{};
  ASSERT_EQ(::stat((folder_ + "/sandbox/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kNobody);
}

TEST_F(FetchTest, FollowsNoLinkOutOfTheSandbox) {
  fs::create_directory(folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", folder_ + "/sandbox/link");
  EXPECT_FALSE(fetch({{.uri = folder_ + "/file", .output_file = "link/file"}}));
  EXPECT_TRUE(fs::is_empty(folder_ + "/elsewhere"));
  // A link where the file itself goes is replaced.
  ASSERT_TRUE(fetch({{.uri = folder_ + "/file", .output_file = "link"}}));
  EXPECT_EQ(content("link"), "content");
  EXPECT_TRUE(fs::is_empty(folder_ + "/elsewhere"));
}

TEST_F(FetchTest, RefusesFoldersAndPipes) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0644), 0);
  EXPECT_NE(fetch({{.uri = folder_ + "/pipe"}}).error().message.find("not a regular file"),
            std::string::npos);
  EXPECT_NE(fetch({{.uri = folder_ + "/sandbox"}}).error().message.find("folder"), std::string::npos);
}

TEST_F(FetchTest, AMistakeIsToldBeforeAnythingIsBrought) {
  EXPECT_EQ(fetch({{.uri = folder_ + "/file"}, {.uri = "hdfs://a/b"}}).error().kind, ErrorKind::kInvalid);
  EXPECT_TRUE(fs::is_empty(folder_ + "/sandbox"));
}

/// A server at the loopback address for one client.
class OneClient {
 public:
  explicit OneClient(std::function<void(int)> serve)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::jthread([this, serve = std::move(serve)] {
      const UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
      serve(connection.get());
    });
  }
  std::string uri() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/file";
  }

 private:
  UniqueFd listener_;
  std::jthread thread_;
};

/// Until the client has gone.
void drip(int client) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
  ::send(client, head.data(), head.size(), MSG_NOSIGNAL);
  while (::send(client, "x", 1, MSG_NOSIGNAL) == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST_F(FetchTest, EndsWhenAskedTo) {
  // Nobody answers at the far end: only the request to stop can end it in time.
  std::stop_source source;
  const OneClient server([&](int) { source.request_stop(); });
  const auto stopped = fetch({{.uri = server.uri()}}, ::geteuid(), source.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::kConflict) << to_string(stopped.error());
  EXPECT_TRUE(fs::is_empty(folder_ + "/sandbox") || !fs::exists(folder_ + "/sandbox/file"));
}

TEST_F(FetchTest, GivesUpWhatDrips) {
  const OneClient server(drip);
  plan_.limits.download.window = std::chrono::seconds(1);
  const auto slow = fetch({{.uri = server.uri()}});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().kind, ErrorKind::kTimeout);
  EXPECT_NE(slow.error().message.find(" came in 1.0s"), std::string::npos) << slow.error().message;
}

TEST_F(FetchTest, EndsWhenItsTimeIsOverHoweverTheFilesCome) {
  const OneClient server(drip);
  plan_.limits.all = std::chrono::seconds(1);
  const auto late = fetch({{.uri = server.uri()}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::kTimeout);
  EXPECT_EQ(late.error().message, "The files of the task were not there after 1.0s");
}

TEST(FetchSpec, SurvivesItsJson) {
  FetchSpec spec;
  spec.files = {{"http://a/b", false, true, true, "c"}};
  spec.user = User{1, 2, {3, 4}, "", "/"};
  spec.parent = 5;
  spec.limits.download.stall = std::chrono::seconds(6);
  spec.limits.extract.entries = 7;
  const auto read = decode_fetch_spec(encode(spec));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->files, spec.files);
  EXPECT_EQ(read->user.groups, spec.user.groups);
  EXPECT_EQ(read->user.gid, 2U);
  EXPECT_EQ(read->parent, 5);
  EXPECT_EQ(encode(*read), encode(spec));
}

using FetchLaunchTest = OciFixture;

TEST_F(FetchLaunchTest, FilesAreThereWhenTheTaskStartsAndComeOnce) {
  const auto source = state_ + "/tool.sh";
  std::ofstream(source) << "#!/bin/sh\necho one\n";
  auto launch = launch_of("fetched", {"/bin/sh", "-c", "./tool.sh"});
  launch.task.fetch = {{.uri = source, .executable = true}};
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "one\n");
}

TEST_F(FetchLaunchTest, WhatCannotBeFetchedKeepsTheTaskFromStarting) {
  auto launch = launch_of("unfetched", {"/bin/true"});
  launch.task.fetch = {{.uri = state_ + "/absent"}};
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(launched.error().message.find(state_ + "/absent"), std::string::npos);
}

}  // namespace
}  // namespace drover::container
