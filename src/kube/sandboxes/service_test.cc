#include "kube/sandboxes/service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/fake_tree.h"
#include "kube/sandboxes/client.h"
#include "kube/sandboxes/names.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPodUid = "11111111-2222-3333-4444-555555555555";

class SandboxServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kubelet_.folder("pods/" + kPodUid + "/volumes/kubernetes.io~csi/sandbox");
    store_ = std::make_unique<SandboxStore>(SandboxStore::open(kubelet_.root()).value());
    ASSERT_TRUE(
        store_->publish({.volume = "v", .target = box_, .uid = kPodUid, .name_space = "n", .pod = "t-0"}));
    std::ofstream(box_ + "/answer") << "forty-two";
    std::filesystem::create_directory(box_ + "/sub");
  }
  AskAgent ask() {
    return
        [this](const WireRequest& request) -> Result<WireAnswer> { return answer(*store_, calls_, request); };
  }
  Result<std::string> read(const std::string& path, const User& reader) {
    DROVER_TRY(const auto file, sandbox_file(ask(), kPodUid, reader, path));
    return file.read(0, 100);
  }

  FakeTree kubelet_;
  const std::string box_ = kubelet_ / ("pods/" + kPodUid + "/volumes/kubernetes.io~csi/sandbox/mount");
  std::unique_ptr<SandboxStore> store_;
  PodCalls calls_;
  const User self_{::geteuid(), ::getegid(), {}, "me", "/"};
  const User other_{60601, 60601, {60602, 60603}, "ann", "/"};
};

TEST_F(SandboxServiceTest, ListsAndReads) {
  const auto files = browse_sandbox(ask(), kPodUid, self_, "").value();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name + " " + files[0].kind, "answer file");
  EXPECT_EQ(files[0].size, 9u);
  EXPECT_EQ(files[1].name + " " + files[1].kind, "sub directory");
  EXPECT_GT(files[0].modified_at, wall_clock() - 1h);
  const auto file = sandbox_file(ask(), kPodUid, self_, "answer").value();
  EXPECT_EQ(file.size, 9u);
  EXPECT_EQ(file.read(6, 100).value(), "two");
  EXPECT_EQ(file.read(100, 100).value(), "");
  std::ofstream(box_ + "/new") << "other";
  std::filesystem::rename(box_ + "/new", box_ + "/answer");
  EXPECT_EQ(file.read(0, 9).error().kind, ErrorKind::kConflict) << "it is another one by now";
  EXPECT_EQ(sandbox_sizes(ask()).value().size(), 1u);
}

TEST_F(SandboxServiceTest, NamesAreWhateverTheTaskChose) {
  const std::string name = "a b&path=../x?%2e%2e/#+\n\xc3\xbc";
  std::filesystem::create_directories(box_ + "/" + name.substr(0, name.rfind('/')));
  std::ofstream(box_ + "/" + name) << "found";
  EXPECT_EQ(read(name, self_).value(), "found");
  std::ofstream(box_ + "/\xff") << "no UTF-8";
  EXPECT_EQ(browse_sandbox(ask(), kPodUid, self_, "").value().size(), 4u);
}

TEST_F(SandboxServiceTest, NothingLeadsOut) {
  ASSERT_EQ(::symlink("/etc/shadow", (box_ + "/shadow").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", (box_ + "/etc").c_str()), 0);
  ASSERT_EQ(::symlink("../../../../..", (box_ + "/up").c_str()), 0);
  ASSERT_EQ(::mkfifo((box_ + "/pipe").c_str(), 0666), 0);
  for (const auto* path :
       {"shadow", "etc/passwd", "up", "../mount/answer", "/../../x", "pipe", "sub", "sub/../../x"})
    EXPECT_EQ(read(path, self_).error().kind, ErrorKind::kInvalid) << path;
  for (const auto* path : {"etc", "up", ".."})
    EXPECT_FALSE(browse_sandbox(ask(), kPodUid, self_, path)) << path;
  for (const auto& uid : {std::string(".."), std::string("../records"), std::string("%2e%2e"),
                          kPodUid + "/..", std::string(36, '.')})
    EXPECT_FALSE(browse_sandbox(ask(), uid, self_, "")) << uid;
}

TEST_F(SandboxServiceTest, ItIsReadWithTheRightsOfWhoAsks) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to act as others";
  ::chmod((box_ + "/answer").c_str(), 0600);
  EXPECT_EQ(read("answer", other_).error().kind, ErrorKind::kPermissionDenied);
  EXPECT_THAT(read("answer", other_).error().message, HasSubstr("'ann'"));
  ASSERT_EQ(::chown((box_ + "/answer").c_str(), 0, 60603), 0);
  ::chmod((box_ + "/answer").c_str(), 0640);
  EXPECT_EQ(read("answer", other_).value(), "forty-two") << "by a group";
}

TEST_F(SandboxServiceTest, WhatIsNoQuestionIsRefused) {
  for (const WireRequest& wrong :
       {WireRequest{"GET", "/"},
        {"POST", "/sandboxes"},
        {"GET", "sandboxes"},
        {"GET", "/sandboxes/x/y/z"},
        {"DELETE", "/sandboxes/..%2Frecords"},
        {"DELETE", "/pods"},
        {"GET", "/sandboxes/" + kPodUid + "/files"},
        {"GET", "/sandboxes/" + kPodUid + "/file?path=answer&uid=0&gid=0&offset=0&length=99999999"},
        {"GET", "/sandboxes/" + kPodUid + "/file?path=answer&uid=-1&gid=0&offset=0&length=1"},
        {"GET", "/sandboxes/" + kPodUid + "/file?path=answer&uid=4294967295&gid=0&offset=0&length=1"},
        {"GET", "/sandboxes/" + kPodUid + "/files?uid=0&gid=0&groups=1,x"}})
    EXPECT_GE(answer(*store_, calls_, wrong).status, 400) << wrong.method << " " << wrong.target;
}

TEST_F(SandboxServiceTest, TellsHowLongPodsDidNothing) {
  EXPECT_EQ(idle_times(ask()).error().kind, ErrorKind::kNotFound) << "nobody tells";
  calls_.idle = [] { return IdleTimes{{kPodUid, 61'500ms}}; };
  EXPECT_EQ(idle_times(ask()).value(), (IdleTimes{{kPodUid, 61'500ms}}));
  calls_.idle = [] { return fail(ErrorKind::kUnavailable, "the kubelet does not answer"); };
  EXPECT_EQ(idle_times(ask()).error().message, "the kubelet does not answer");
}

TEST_F(SandboxServiceTest, KillsPodsThatHaveASandboxHereAndNoOthers) {
  const std::string other = "22222222-3333-4444-5555-666666666666";
  EXPECT_EQ(kill_pod(ask(), kPodUid).error().kind, ErrorKind::kNotFound) << "nobody does";
  std::vector<std::string> killed;
  calls_.kill = [&](const auto& uid) -> Status {
    killed.push_back(uid);
    return {};
  };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(kill_pod(ask(), kPodUid));
  EXPECT_THAT(killed, ElementsAre(kPodUid, kPodUid)) << "it may be asked again";
  for (const auto& uid : {other, std::string("..%2Frecords"), std::string(), kPodUid + "/x"})
    EXPECT_EQ(kill_pod(ask(), uid).error().kind, ErrorKind::kNotFound) << uid;
  EXPECT_EQ(answer(*store_, calls_, {"GET", "/pods/" + kPodUid}).status, 404);
  calls_.kill = [](const auto&) { return fail(ErrorKind::kUnavailable, "the runtime does not answer"); };
  EXPECT_EQ(kill_pod(ask(), kPodUid).error().message, "the runtime does not answer");
  ASSERT_TRUE(store_->unpublish("v", box_));
  EXPECT_TRUE(kill_pod(ask(), kPodUid)) << "it has ended";
}

TEST_F(SandboxServiceTest, AnAgentIsNotBelieved) {
  for (const auto* body : {"", "[]", "{}", R"({"files": 1})", R"({"files": [{"name": "../x"}]})",
                           R"({"files": [{"name": ""}]})", R"({"files": [{"name": ".."}]})"})
    EXPECT_FALSE(browse_sandbox([&](const auto&) { return WireAnswer{200, body}; }, kPodUid, self_, ""))
        << body;
  const auto more = [](const auto&) { return WireAnswer{200, "more than was asked for", 100, 7}; };
  EXPECT_FALSE(sandbox_file(more, kPodUid, self_, "x").value().read(0, 4));
  for (const auto* body : {"", "{}", R"({"pods": {}})"})
    EXPECT_FALSE(idle_times([&](const auto&) { return WireAnswer{200, body}; })) << body;
  EXPECT_FALSE(remove_sandbox([](const auto&) { return WireAnswer{500, "no JSON"}; }, kPodUid));
}

TEST_F(SandboxServiceTest, SpeaksAtItsSocket) {
  const auto path = kubelet_ / fmt::format("plugins/{}/{}", kSandboxDriver, kSandboxSocket);
  auto service = SandboxService::listen(*store_, calls_).value();
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  Wire wire(socket.get(), socket.get());
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  const AskAgent over_wire = [&](const WireRequest& request) -> Result<WireAnswer> {
    DROVER_CHECK_OK(wire.send(request, deadline));
    return wire.receive_answer(deadline);
  };
  std::ofstream(box_ + "/large") << std::string(3 << 20, 'x');
  const auto large = sandbox_file(over_wire, kPodUid, self_, "large").value();
  EXPECT_EQ(large.size, 3u << 20);
  EXPECT_EQ(large.read(1, 1 << 20).value(), std::string(1 << 20, 'x'));
  EXPECT_EQ(browse_sandbox(over_wire, kPodUid, self_, "nothing").error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(remove_sandbox(over_wire, kPodUid));
  service.reset();  // with a connection
  EXPECT_FALSE(sandbox_sizes(over_wire));
}

TEST(SandboxWire, NonsenseAndSilenceEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd one(ends[0]);
  UniqueFd other(ends[1]);
  Wire wire(one.get(), one.get());
  EXPECT_EQ(wire.receive_answer(std::chrono::steady_clock::now() + 20ms).error().kind, ErrorKind::kTimeout);
  ASSERT_TRUE(write_all(other.get(), "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "the wire"));
  EXPECT_EQ(wire.receive_answer(std::chrono::steady_clock::now() + 10s).error().kind,
            ErrorKind::kUnavailable);
  Wire again(one.get(), one.get());
  ASSERT_TRUE(write_all(other.get(), "what?\r\n\r\n", "the wire"));
  EXPECT_EQ(again.receive_answer(std::chrono::steady_clock::now() + 10s).error().kind,
            ErrorKind::kUnavailable);
  other.reset();
  Wire ended(one.get(), one.get());
  EXPECT_EQ(ended.receive_request(std::chrono::steady_clock::now() + 10s).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace drover::kube
