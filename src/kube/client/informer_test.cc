#include "kube/client/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <nlohmann/json.hpp>

#include "kube/client/api_client.h"
#include "kube/client/testing/fake_api.h"
#include "kube/client/testing/scripted_server.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::FakeApi;
using ::testing::HasSubstr;
using testing::ScriptedReply;
using testing::ScriptedRequest;
using testing::ScriptedServer;

constexpr auto kLong = 20s;

json pod_of(const std::string& name, const std::string& node = "a") {
  return {{"metadata", {{"name", name}}}, {"spec", {{"nodeName", node}}}};
}

/// What listeners were told, in words: "+x", "~x", "-x".
class ReceivedChanges {
 public:
  InformerOptions<> options(Selection selection = {kPods, "n", "", "spec.nodeName=a"}) {
    return {.selection = std::move(selection),
            .on_change =
                [this](const Change<>& change) {
                  const auto* sign = !change.before ? "+" : change.now ? "~" : "-";
                  add(sign + text_at(change.now ? *change.now : *change.before, "/metadata/name"));
                },
            .on_trouble = [this](const Error& error) { add("!" + error.message); },
            .first_pause = 1ms,
            .longest_pause = 5ms,
            .seed = 1};
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLong, [&] { return received_.size() >= count; })) << count;
    return received_;
  }

 private:
  void add(const std::string& word) {
    const std::lock_guard lock(mutex_);
    received_.push_back(word);
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> received_;
};

TEST(Informer, FollowsWhatChanges) {
  FakeApi api;
  ReceivedChanges received;
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("x")));
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("elsewhere", "b")));
  const Informer informer(api, received.options());
  ASSERT_TRUE(informer.wait_until_listed(kLong));
  EXPECT_EQ(informer.objects().size(), 1U);
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("y")));
  EXPECT_TRUE(api.patch({kPods, "n", "x"}, PatchType::kMerge, {{"status", {{"phase", "Running"}}}}));
  EXPECT_TRUE(api.remove({kPods, "n", "y"}));
  EXPECT_THAT(received.wait_for(4), ElementsAre("+x", "+y", "~x", "-y"));
  EXPECT_EQ(text_at(*informer.find("n/x"), "/status/phase"), "Running");
  EXPECT_EQ(informer.find("n/y"), nullptr);
}

TEST(Informer, GoesOnWhereAWatchEnded) {
  FakeApi api;
  ReceivedChanges received;
  const Informer informer(api, received.options());
  ASSERT_TRUE(informer.wait_until_listed(kLong));
  for (int i = 0; i < 5; ++i) {
    api.end_watches();
    EXPECT_TRUE(api.create({kPods, "n"}, pod_of("p" + std::to_string(i))));
  }
  EXPECT_THAT(received.wait_for(5), ElementsAre("+p0", "+p1", "+p2", "+p3", "+p4"));
  const auto requests = api.requests();
  EXPECT_EQ(std::ranges::count(requests, "list", &ApiRequest::verb), 1);
}

TEST(Informer, TellsTheDifferenceWhenTheServerHasForgotten) {
  FakeApi api;
  ReceivedChanges received;
  for (const auto* name : {"stays", "changes", "goes"}) EXPECT_TRUE(api.create({kPods, "n"}, pod_of(name)));
  std::latch changed(1);
  auto options = received.options();
  options.on_change = [&, notify = options.on_change](const Change<>& change) {
    notify(change);
    changed.wait();  // so that it sees none of the changes in its watch
  };
  const Informer informer(api, std::move(options));
  received.wait_for(1);
  EXPECT_TRUE(api.remove({kPods, "n", "goes"}));
  EXPECT_TRUE(api.patch({kPods, "n", "changes"}, PatchType::kMerge, {{"status", 1}}));
  api.forget();
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("comes")));
  changed.count_down();
  const auto all = received.wait_for(6);
  EXPECT_THAT(std::vector(all.begin() + 3, all.end()),
              ::testing::UnorderedElementsAre("~changes", "-goes", "+comes"));
  EXPECT_EQ(informer.objects().size(), 3U);
}

TEST(Informer, TellsOfTheOldOneBeforeAnotherOfItsNameComes) {
  FakeApi api;
  ReceivedChanges received;
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("x")));
  std::latch changed(1);
  auto options = received.options();
  options.on_change = [&, notify = options.on_change](const Change<>& change) {
    notify(change);
    changed.wait();
  };
  const Informer informer(api, std::move(options));
  received.wait_for(1);
  EXPECT_TRUE(api.remove({kPods, "n", "x"}));
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("x")));
  api.forget();
  changed.count_down();
  EXPECT_THAT(received.wait_for(3), ElementsAre("+x", "-x", "+x"));
}

/// What somebody needs of a pod: its node, when that begins with "a".
struct PlacedPod {
  std::string name;
  std::string node;
};

TEST(Informer, KeepsWhatIsReadOfAnObject) {
  FakeApi api;
  std::mutex mutex;
  std::vector<std::string> words;
  const auto add = [&](const std::string& word) {
    const std::lock_guard lock(mutex);
    words.push_back(word);
  };
  std::atomic<int> reads = 0;
  for (const auto* name : {"fine", "odd", "throws"})
    EXPECT_TRUE(api.create({kPods, "n"}, pod_of(name, name == std::string("fine") ? "a1" : "b")));
  EXPECT_TRUE(api.patch({kPods, "n", "throws"}, PatchType::kMerge, {{"spec", {{"nodeName", {1}}}}}));
  const Informer<PlacedPod> informer(
      api, {.selection = {kPods, "n"},
            .read = [&](const json& pod) -> Result<PlacedPod> {
              ++reads;
              auto node = pod.at("spec").at("nodeName").get<std::string>();
              if (!node.starts_with('a')) return fail(ErrorKind::kInvalid, "its node is odd");
              return PlacedPod{text_at(pod, "/metadata/name"), node};
            },
            .on_change =
                [&](const Change<PlacedPod>& change) {
                  add((change.before ? change.before->node : "") + ">" +
                      (change.now ? change.now->name + change.now->node : ""));
                },
            .on_trouble = [&](const Error& error) { add(error.message.substr(0, 39)); },
            .first_pause = 1ms,
            .longest_pause = 5ms});
  const auto wait_for = [&](std::size_t count) {
    const auto is_there = [&] {
      const std::lock_guard lock(mutex);
      return words.size() >= count;
    };
    for (int i = 0; i < 4000 && !is_there(); ++i) std::this_thread::sleep_for(5ms);
    const std::lock_guard lock(mutex);
    return std::exchange(words, {});
  };
  ASSERT_TRUE(informer.wait_until_listed(kLong));
  EXPECT_THAT(wait_for(3), ElementsAre("Failed to read pods 'n/odd': its node i",
                                       "Failed to read pods 'n/throws': [json.e", ">finea1"));
  EXPECT_EQ(informer.objects().size(), 1U);
  EXPECT_EQ(informer.find("n/odd"), nullptr);

  const auto set_node = [&](const char* name, const char* node) {
    EXPECT_TRUE(api.patch({kPods, "n", name}, PatchType::kMerge, {{"spec", {{"nodeName", node}}}}));
  };
  set_node("odd", "c");  // still odd, and told already
  set_node("odd", "a2");
  set_node("fine", "b");
  EXPECT_THAT(wait_for(3), ElementsAre(">odda2", "Failed to read pods 'n/fine': its node ", "a1>"));

  const int before = reads;
  api.forget();
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("new", "a3")));
  EXPECT_THAT(wait_for(1), ElementsAre(">newa3"));
  EXPECT_EQ(reads, before + 1);  // a new list reads only what is new, and tells of nothing again
}

TEST(Informer, TellsATroubleOnceUntilItIsOver) {
  FakeApi api;
  const Error down{ErrorKind::kUnavailable, "down", "", ""};
  ReceivedChanges received;
  EXPECT_TRUE(api.create({kPods, "n"}, pod_of("x")));
  api.fail_next({down, down, down, {ErrorKind::kPermissionDenied, "denied", "", ""}, down});
  const Informer informer(api, received.options());
  EXPECT_THAT(received.wait_for(4), ElementsAre("!down", "!denied", "!down", "+x"));
}

TEST(Informer, SaysWhyThereIsNoList) {
  FakeApi api;
  api.fail_next(std::vector<Error>(100'000, {ErrorKind::kPermissionDenied, "denied", "ask", ""}));
  ReceivedChanges received;
  const Informer informer(api, received.options());
  received.wait_for(1);
  const auto waited = informer.wait_until_listed(1ms);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error(), (Error{ErrorKind::kTimeout, "denied", "ask", ""}));
}

std::string watch_line(const std::string& type, const std::string& name, int version) {
  return json{{"type", type},
              {"object", {{"metadata", {{"name", name}, {"resourceVersion", std::to_string(version)}}}}}}
             .dump() +
         "\n";
}

TEST(Informer, OverHttpSurvivesWhateverEndsAWatch) {
  std::atomic<int> watches = 0;
  ScriptedServer server([&](const ScriptedRequest& request, ScriptedReply& reply) {
    if (request.target.find("watch=true") == std::string::npos)
      return reply.send(200, R"({"metadata":{"resourceVersion":"5"},"items":[]})");
    const int number = watches++;
    if (number == 1) return reply.send(503, "");
    reply.begin_stream();
    const std::string cut = watch_line("ADDED", "b", 7);
    if (number == 0) reply.write(watch_line("ADDED", "a", 6) + cut.substr(0, 20));  // in the middle of a line
    if (number == 2) reply.write(cut + watch_line("BOOKMARK", "", 50) + "{garbage\n");
    if (number == 3) {
      reply.write(R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}})"
                  "\n");
    }
    if (number >= 4) reply.write(watch_line("ADDED", "c", 60 + number));
    while (number >= 4 && reply.write("\n")) std::this_thread::sleep_for(5ms);
  });
  const auto client = ApiClient::open({.url = server.url()}, {}, {}, 1);
  ASSERT_TRUE(client);
  ReceivedChanges received;
  {
    const Informer informer(**client, received.options({kNodes}));
    std::vector<std::string> words;
    for (std::size_t count = 1; words.empty() || words.back() != "+c"; ++count)
      words = received.wait_for(count);
    std::erase_if(words, [](const std::string& word) { return word.starts_with("!"); });
    EXPECT_THAT(words, ElementsAre("+a", "+b", "-a", "-b", "+c"));
  }
  server.drop();
  std::vector<std::string> watched;
  for (const auto& request : server.requests())
    if (const auto at = request.target.find("&resourceVersion="); at != std::string::npos)
      watched.push_back(request.target.substr(at + 17, request.target.find('&', at + 1) - at - 17));
  EXPECT_THAT(std::vector(watched.begin(), watched.begin() + 5), ElementsAre("5", "6", "6", "50", "5"));
}

TEST(Informer, EndsWhileAServerIsSilent) {
  std::stop_source end;
  ScriptedServer server([&](const ScriptedRequest& request, ScriptedReply& reply) {
    if (request.target.find("watch=true") == std::string::npos)
      return reply.send(200, R"({"metadata":{"resourceVersion":"5"},"items":[]})");
    reply.begin_stream();
    while (!end.stop_requested()) std::this_thread::sleep_for(5ms);
  });
  const auto client = ApiClient::open({.url = server.url()}, {}, {}, 1);
  {
    const Informer informer(**client, {.selection = {kNodes}});
    while (server.requests().size() < 2) std::this_thread::sleep_for(5ms);
  }
  end.request_stop();
}

}  // namespace
}  // namespace drover::kube
