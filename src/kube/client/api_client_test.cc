// The real client against servers that answer as each test says.

#include "kube/client/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

#include "base/fake_tree.h"
#include "kube/client/testing/scripted_server.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScriptedReply;
using testing::ScriptedRequest;
using testing::ScriptedServer;

const ObjectPath kNodeA = {kNodes, "", "a"};
constexpr ClientLimits kImpatient = {.first_pause = 1ms, .longest_pause = 5ms, .attempt = 5s};

std::unique_ptr<ApiClient> client_of(const ScriptedServer& server, ServerConfig config = {},
                                     ClientLimits limits = kImpatient) {
  config.url = server.url();
  config.source = "the test";
  auto client = ApiClient::open(std::move(config), {}, limits, 1);
  EXPECT_TRUE(client);
  return std::move(*client);
}

std::string status_body(int code, const std::string& message, const json& details = json::object()) {
  return json{{"kind", "Status"}, {"code", code}, {"message", message}, {"details", details}}.dump();
}

/// The connection ends without an answer.
constexpr int kSilence = 0;

/// Answers with these in their order, the last one again and again.
struct Script {
  struct Step {
    int status;
    std::string body;
    std::string headers = "";
  };
  std::vector<Step> steps;
  std::shared_ptr<std::atomic<std::size_t>> at = std::make_shared<std::atomic<std::size_t>>(0);

  void operator()(const ScriptedRequest&, ScriptedReply& reply) const {
    const auto& step = steps[std::min((*at)++, steps.size() - 1)];
    if (step.status != kSilence) reply.send(step.status, step.body, step.headers);
    if (step.status == kSilence) reply.end();
  }
};

Error error_of(Api& api, const ApiRequest& request) {
  const auto answer = api.send(request);
  EXPECT_FALSE(answer);
  return answer ? Error() : answer.error();
}

TEST(ApiClient, SaysEachVerbAsTheServerExpectsIt) {
  const ScriptedServer server(Script{{{200, R"({"kind":"x"})"}}});
  const auto client = client_of(server, {.token = {.text = "secret\n"}});
  const ObjectPath claim = {{"resource.k8s.io", "v1", "resourceclaims"}, "team a", "c", "status"};
  EXPECT_TRUE(client->get(kNodeA));
  EXPECT_TRUE(client->create({kNodes}, {{"a", 1}}));
  EXPECT_TRUE(client->replace(claim, {{"a", 2}}));
  EXPECT_TRUE(client->patch(kNodeA, PatchType::kMerge, {{"a", 3}}));
  EXPECT_TRUE(client->patch(kNodeA, PatchType::kStrategic, {{"a", 4}}));
  EXPECT_TRUE(client->apply(kNodeA, {{"a", 5}}, "drover & co"));
  EXPECT_TRUE(client->remove(kNodeA, "u-1"));
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 7U);
  const auto expect = [&](std::size_t at, const std::string& line, const std::string& type) {
    EXPECT_EQ(requests[at].method + " " + requests[at].target, line);
    EXPECT_EQ(requests[at].headers.contains("content-type") ? requests[at].headers.at("content-type") : "",
              type);
    EXPECT_EQ(requests[at].headers.at("authorization"), "Bearer secret");
  };
  expect(0, "GET /api/v1/nodes/a", "");
  expect(1, "POST /api/v1/nodes", "application/json");
  expect(2, "PUT /apis/resource.k8s.io/v1/namespaces/team%20a/resourceclaims/c/status", "application/json");
  expect(3, "PATCH /api/v1/nodes/a", "application/merge-patch+json");
  expect(4, "PATCH /api/v1/nodes/a", "application/strategic-merge-patch+json");
  expect(5, "PATCH /api/v1/nodes/a?fieldManager=drover%20%26%20co&force=true",
         "application/apply-patch+yaml");
  expect(6, "DELETE /api/v1/nodes/a", "application/json");
  EXPECT_EQ(requests[4].body, R"({"a":4})");
  EXPECT_THAT(requests[6].body, HasSubstr(R"("uid":"u-1")"));
}

TEST(ApiClient, ListsAllPages) {
  const ScriptedServer server([](const ScriptedRequest& request, ScriptedReply& reply) {
    const bool second = request.target.find("continue=next%2Fpage") != std::string::npos;
    reply.send(200, second ? R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b"}}]})"
                           : R"({"metadata":{"resourceVersion":"7","continue":"next/page"},
                                "items":[{"metadata":{"name":"a","namespace":"n","managedFields":[{}]}}]})");
  });
  const auto client = client_of(server);
  const auto list = client->list({kPods, "", "app=x", "spec.nodeName=a"});
  ASSERT_TRUE(list) << to_string(list.error());
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(key_of(*list->items[0]), "n/a");
  EXPECT_TRUE(list->items[0]->at("metadata").contains("managedFields"));
  const auto without = client->list({.resource = kPods, .managed_fields = false});
  EXPECT_FALSE(without.value().items[0]->at("metadata").contains("managedFields"));
  EXPECT_EQ(list->resource_version, "7");
  EXPECT_EQ(server.requests()[0].target,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Da&labelSelector=app%3Dx&limit=500");
}

TEST(ApiClient, ListsAnewWhenAPageIsForgotten) {
  const ScriptedServer server(
      Script{{{200, R"({"metadata":{"continue":"x"},"items":[{"metadata":{"name":"old"}}]})"},
              {410, status_body(410, "The provided continue parameter is too old")},
              {200, R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"new"}}]})"}}});
  const auto list = client_of(server)->list({kNodes});
  ASSERT_TRUE(list) << to_string(list.error());
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(key_of(*list->items[0]), "new");
}

TEST(ApiClient, SaysWhatTheServerRefuses) {
  const auto refused = [](int code, const std::string& body) {
    const ScriptedServer server(Script{{{code, body}}});
    return error_of(*client_of(server), {.verb = "patch", .path = {kNodes, "", "a", "status"}});
  };
  const auto denied = refused(403, status_body(403, "nodes \"a\" is forbidden: User \"x\" cannot patch."));
  EXPECT_EQ(denied.kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(denied.message,
            "Failed to patch nodes/status 'a': nodes \"a\" is forbidden: User \"x\" cannot patch");
  EXPECT_THAT(denied.hint, HasSubstr("'patch' 'nodes/status'"));
  EXPECT_EQ(refused(404, "").message,
            "Failed to patch nodes/status 'a': the API server answered 404 (Not Found)");
  EXPECT_EQ(refused(404, "").kind, ErrorKind::kNotFound);
  EXPECT_EQ(refused(409, "{").kind, ErrorKind::kConflict);
  EXPECT_EQ(refused(410, "[]").kind, ErrorKind::kNotFound);
  EXPECT_EQ(refused(401, "").kind, ErrorKind::kUnauthenticated);
  EXPECT_EQ(refused(422, status_body(422, "x\x1b[2J\ny")).kind, ErrorKind::kInvalid);
  EXPECT_THAT(refused(422, status_body(422, "x\x1b[2J\ny")).message, HasSubstr(": x [2J y"));
  EXPECT_EQ(refused(302, "<html>").kind, ErrorKind::kUnavailable);
  EXPECT_EQ(refused(200, "<html>").kind, ErrorKind::kUnavailable);
  EXPECT_LT(refused(400, std::string(1 << 20, 'x')).message.size(), 1000U);
}

TEST(ApiClient, TriesAgainWhatMayGoBetter) {
  const ScriptedServer server(Script{{{503, ""},
                                      {429, status_body(429, "too many", {{"retryAfterSeconds", 0}})},
                                      {500, ""},
                                      {kSilence, ""},
                                      {200, "{}"}}});
  const auto answer = client_of(server)->get(kNodeA);
  EXPECT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(server.requests().size(), 5U);
}

TEST(ApiClient, MakesNothingTwice) {
  for (const Script::Step& first : std::vector<Script::Step>{{500, ""}, {kSilence, ""}, {503, ""}}) {
    const ScriptedServer server(Script{{{200, "{}"}, first, {201, "{}"}}});
    const auto client = client_of(server);
    EXPECT_TRUE(client->get(kNodeA));  // so that there is a connection, which curl thinks may have gone stale
    EXPECT_FALSE(client->create({kNodes}, json::object()));
    EXPECT_EQ(server.requests().size(), 2U) << first.status;
  }
  for (const Script::Step& first : std::vector<Script::Step>{{429, ""}, {503, "", "Retry-After: 0\r\n"}}) {
    const ScriptedServer server(Script{{first, {201, "{}"}}});
    EXPECT_TRUE(client_of(server)->create({kNodes}, json::object()));
  }
}

TEST(ApiClient, MakesAgainWhatMayBeMadeAgain) {
  const ScriptedServer server(Script{{{200, "{}"}, {kSilence, ""}, {500, ""}, {kSilence, ""}, {201, "{}"}}});
  const auto client = client_of(server);
  EXPECT_TRUE(client->get(kNodeA));
  EXPECT_TRUE(client->send({.verb = "create", .path = {kNodes}, .body = "{}", .repeatable = true}));
  EXPECT_EQ(server.requests().size(), 5U);
}

TEST(ApiClient, MakesAgainWhatTheServerCannotHave) {
  std::optional<ScriptedServer> server(std::in_place, Script{{{201, "{}"}}});
  ServerConfig config = {.url = server->url()};
  auto limits = kImpatient;
  limits.first_pause = limits.longest_pause = 20ms;
  limits.attempts = 2;
  const auto client = ApiClient::open(config, {}, limits, 1);
  ASSERT_TRUE(client);
  server.reset();  // connections are refused
  const auto begin = std::chrono::steady_clock::now();
  const auto made = (*client)->create({kNodes}, json::object());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().hint, "");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 10ms);  // there was a pause: it was tried again
}

/// All at once, on so many threads.
void on_threads(int threads, const std::function<void(int thread)>& work) {
  std::vector<std::jthread> all;
  for (int thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
}

TEST(ApiClient, KeepsConnectionsForWrites) {
  const auto authority = testing::make_authority("cluster");
  const ScriptedServer server(testing::make_identity("server", authority), Script{{{201, "{}"}}});
  const auto client = client_of(server, {.authorities = {.text = authority.certificate}});
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(client->create({kNodes}, json::object()));
  EXPECT_EQ(server.connections(), 1U);
  on_threads(16, [&](int) {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(client->create({kNodes}, json::object()));
  });
  EXPECT_EQ(server.requests().size(), 1800U);
  EXPECT_LE(server.connections(), 16U);
}

TEST(ApiClient, UsesNoConnectionThatWasIdleForTooLong) {
  const ScriptedServer server(Script{{{201, "{}"}}});
  auto limits = kImpatient;
  limits.idle = 0s;
  const auto client = client_of(server, {}, limits);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client->create({kNodes}, json::object()));
  EXPECT_EQ(server.connections(), 3U);
}

TEST(ApiClient, NoticesThatAKeptConnectionWasClosed) {
  const auto authority = testing::make_authority("cluster");
  const auto answer_and_close = [](const ScriptedRequest&, ScriptedReply& reply) {
    reply.send(201, "{}");
    reply.end();
  };
  const ScriptedServer plain(answer_and_close);
  const ScriptedServer encrypted(testing::make_identity("server", authority), answer_and_close);
  for (const auto* server : {&plain, &encrypted}) {
    const auto client = client_of(*server, {.authorities = {.text = authority.certificate}});
    for (int i = 0; i < 10; ++i, std::this_thread::sleep_for(20ms)) {
      const auto made = client->create({kNodes}, json::object());
      EXPECT_TRUE(made) << to_string(made.error());
    }
    EXPECT_EQ(server->requests().size(), 10U);
  }
}

/// Makes objects by their names. Now and then it closes a connection instead of answering, half of the times
/// after it has made the object.
class ClosingServer {
 public:
  void operator()(const ScriptedRequest& request, ScriptedReply& reply) {
    const std::lock_guard lock(mutex_);
    const auto chance = random_() % 10;
    const auto name = text_at(json::parse(request.body), "/metadata/name");
    const bool is_there = made_.contains(name);
    if (chance != 0 && !is_there) ++made_[name];
    if (chance != 0 && is_there) doubled_ += 1;
    if (chance <= 1) return reply.end();
    reply.send(is_there ? 409 : 201, is_there ? status_body(409, "it exists already") : "{}");
  }
  std::size_t made() const { return made_.size(); }
  int doubled() const { return doubled_; }

 private:
  std::mutex mutex_;
  std::minstd_rand random_{7};
  std::map<std::string, int> made_;
  int doubled_ = 0;  ///< were asked for although they had been made
};

TEST(ApiClient, LosesAndDoublesNothingWhenConnectionsEnd) {
  constexpr int kThreads = 8;
  constexpr int kEach = 40;
  for (const bool repeatable : {false, true}) {
    ClosingServer state;
    std::atomic<std::size_t> done = 0;
    std::atomic<std::size_t> there = 0;
    std::atomic<std::size_t> unknown = 0;
    const ScriptedServer server(std::ref(state));
    auto limits = kImpatient;
    limits.attempts = 20;
    const auto client = client_of(server, {}, limits);
    on_threads(kThreads, [&](int thread) {
      for (int i = 0; i < kEach; ++i) {
        const json object = {{"metadata", {{"name", fmt::format("{}-{}", thread, i)}}}};
        const auto made = client->send({.verb = "create",
                                        .path = {kNodes},
                                        .content_type = "application/json",
                                        .body = object.dump(),
                                        .repeatable = repeatable});
        if (made) ++done;
        if (!made) ++(made.error().kind == ErrorKind::kConflict ? there : unknown);
      }
    });
    EXPECT_EQ(done + there + unknown, kThreads * kEach);
    EXPECT_GT(unknown + there, 0U);
    if (repeatable) {
      EXPECT_EQ(unknown, 0U);
      EXPECT_EQ(state.made(), kThreads * kEach);
    } else {
      EXPECT_EQ(there, 0U);
      EXPECT_EQ(state.doubled(), 0);
      EXPECT_EQ(server.requests().size(), kThreads * kEach);
      EXPECT_GE(state.made(), done);
    }
  }
}

TEST(ApiClient, GivesUp) {
  const ScriptedServer server(Script{{{503, ""}}});
  EXPECT_EQ(error_of(*client_of(server), {.verb = "get", .path = kNodeA}).kind, ErrorKind::kUnavailable);
  EXPECT_EQ(server.requests().size(), static_cast<std::size_t>(kImpatient.attempts));
  const ScriptedServer later(Script{{{429, "", "Retry-After: 3600\r\n"}}});
  EXPECT_EQ(error_of(*client_of(later), {.verb = "get", .path = kNodeA}).kind, ErrorKind::kUnavailable);
  EXPECT_EQ(later.requests().size(), 1U);
}

TEST(ApiClient, DoesNotWaitForAServerThatIsSilent) {
  std::stop_source end;
  ScriptedServer server([&](const ScriptedRequest&, ScriptedReply&) {
    while (!end.stop_requested()) std::this_thread::sleep_for(5ms);
  });
  auto limits = kImpatient;
  limits.attempt = 1s;
  limits.attempts = 2;
  const auto error = error_of(*client_of(server, {}, limits), {.verb = "get", .path = kNodeA});
  EXPECT_EQ(error.kind, ErrorKind::kTimeout);
  EXPECT_THAT(error.message, HasSubstr("Failed to get nodes 'a': the API server at 'http://127.0.0.1:"));
  end.request_stop();
}

TEST(ApiClient, HasNoMorePatienceThanARequestSays) {
  std::stop_source end;
  ScriptedServer server([&](const ScriptedRequest&, ScriptedReply&) {
    while (!end.stop_requested()) std::this_thread::sleep_for(5ms);
  });
  const auto client = client_of(server, {}, {.first_pause = 1ms});
  const auto error = error_of(*client, {.verb = "get", .path = kNodeA, .patience = 100ms});
  EXPECT_EQ(error.kind, ErrorKind::kTimeout);
  EXPECT_EQ(server.requests().size(), 1U);
  end.request_stop();
}

TEST(ApiClient, EndsItsCallsWhenItIsStopped) {
  std::stop_source end;
  std::stop_source stop;
  ScriptedServer server([&](const ScriptedRequest&, ScriptedReply&) {
    stop.request_stop();
    while (!end.stop_requested()) std::this_thread::sleep_for(5ms);
  });
  const auto client = client_of(server, {}, {.attempt = 3600s, .call = 3600s});
  const auto answer = client->send({.verb = "get", .path = kNodeA}, stop.get_token());
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("it was stopped"));
  end.request_stop();
}

TEST(ApiClient, RefusesNamesThatLeadElsewhere) {
  const ScriptedServer server(Script{{{200, "{}"}}});
  const auto client = client_of(server);
  EXPECT_EQ(error_of(*client, {.verb = "get", .path = {kNodes, "", ".."}}).kind, ErrorKind::kInvalid);
  EXPECT_TRUE(client->get({kNodes, "", "../x?y#z"}));
  EXPECT_EQ(server.requests().at(0).target, "/api/v1/nodes/..%2Fx%3Fy%23z");
}

TEST(ApiClient, ShowsTheTokenThatIsThereNow) {
  FakeTree tree;
  tree.file("token", "first");
  const ScriptedServer server(Script{{{200, "{}"}}});
  const auto client = client_of(server, {.token = {.file = tree / "token"}});
  EXPECT_TRUE(client->get(kNodeA));
  tree.file("token", "second\n");
  EXPECT_TRUE(client->get(kNodeA));
  EXPECT_EQ(server.requests().at(1).headers.at("authorization"), "Bearer second");
  tree.file("token", "evil\r\nX-Evil: 1");
  const auto error = error_of(*client, {.verb = "get", .path = kNodeA});
  EXPECT_THAT(to_string(error), AllOf(HasSubstr("the test is no token"), Not(HasSubstr("Evil"))));
  std::filesystem::remove(tree / "token");
  EXPECT_EQ(client->remove(kNodeA).error().kind, ErrorKind::kUnavailable);
}

TEST(ApiClient, BelievesTheClustersAuthorityAlone) {
  const auto machine = testing::make_authority("machine");
  const auto cluster = testing::make_authority("cluster");
  FakeTree tree;
  const auto hash = X509_subject_name_hash(testing::read_certificate(machine.certificate).get());
  tree.file(fmt::format("{:08x}.0", hash), machine.certificate);  // as OpenSSL finds it
  ::setenv("SSL_CERT_DIR", tree.root().c_str(), 1);
  const auto ask = [](const testing::Identity& signer, const std::string& believed) {
    const ScriptedServer server(testing::make_identity("server", signer), Script{{{200, "{}"}}});
    return client_of(server, {.authorities = {.text = believed}})->get(kNodeA);
  };
  EXPECT_TRUE(ask(cluster, cluster.certificate));
  EXPECT_TRUE(ask(machine, ""));
  const auto other = ask(machine, cluster.certificate);
  ::unsetenv("SSL_CERT_DIR");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_THAT(to_string(other.error()),
              AllOf(HasSubstr("is not trusted"), HasSubstr("certificate-authority")));
}

TEST(ApiClient, ShowsItsCertificate) {
  const auto cluster = testing::make_authority("cluster");
  const auto me = testing::make_identity("system:node:a", cluster);
  const ScriptedServer server(testing::make_identity("server", cluster), Script{{{200, "{}"}}},
                              cluster.certificate);
  FakeTree tree;
  tree.file("me.crt", me.certificate).file("me.key", me.key);
  const Secret authority = {.text = cluster.certificate};
  EXPECT_TRUE(client_of(server, {.authorities = authority,
                                 .certificate = {.file = tree / "me.crt"},
                                 .key = {.file = tree / "me.key"}})
                  ->get(kNodeA));
  EXPECT_FALSE(client_of(server, {.authorities = authority})->get(kNodeA));
}

}  // namespace
}  // namespace drover::kube
