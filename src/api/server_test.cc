#include "api/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::body_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RawConnection;
using testing::ServerFixture;
using testing::status_of;

class ServerTest : public ::testing::Test {
 protected:
  std::string ask(const std::string& method, const std::string& target, const std::string& body = "",
                  const std::string& headers = "") {
    return server_.exchange(method, target, body,
                            std::string(body.empty() ? "" : ServerFixture::kOfJson) + headers);
  }
  json get(const std::string& target) { return json::parse(body_of(ask("GET", target))); }
  std::string submit() {
    const auto answer = ask("POST", "/v1/tasks", R"({"command": ["sleep", "1"]})");
    EXPECT_EQ(status_of(answer), 201) << answer;
    return json::parse(body_of(answer)).at("task").at("id");
  }
  void finish(const std::string& id) {
    server_.on_strand([&] { server_.daemon().end(id, 0, control::TaskState::kFinished); });
  }

  ServerFixture server_;
};

TEST_F(ServerTest, TheSocketIsForEverybody) {
  struct stat info{};
  ASSERT_EQ(::stat(server_.socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0666u);
}

TEST_F(ServerTest, TellsWhatTheMachineIs) {
  EXPECT_EQ(get("/v1/version").at("version"), "1.2.3");
  EXPECT_EQ(get("/health").at("status"), "ok");
  const auto node = get("/v1/nodes").at("nodes").at(0);
  EXPECT_EQ(node.at("resources"),
            "gpus(*):2; cpus(*):40; mem(*):8192; disk(*):1048576; ports(*):[31000-32000]");
  EXPECT_EQ(node.at("cpus").at("free"), 39.5);
  const auto gpus = get("/v1/gpus");
  EXPECT_EQ(gpus.at("simulated"), true);
  EXPECT_EQ(gpus.at("gpus").at(0).at("pci"), "0000:82:00.0");
  EXPECT_EQ(gpus.at("gpus").at(0).at("used_by"), nullptr);
  EXPECT_EQ(gpus.at("gpus").at(1).at("used_by").at("user"), "alice");
  EXPECT_EQ(get("/v1/topology").at("links").at(0).at(1).at("label"), "NV2");
}

TEST_F(ServerTest, AnUnhealthyGpuIsToldByHealth) {
  server_.on_strand([&] { server_.daemon().inventory_.devices[1].unhealthy = "it fell off the bus"; });
  const auto health = get("/health");
  EXPECT_EQ(health.at("status"), "degraded");
  EXPECT_THAT(health.at("problems").at(0).at("message").get<std::string>(), HasSubstr("fell off the bus"));
}

TEST_F(ServerTest, ATaskFromSubmissionToRemoval) {
  const auto answer = ask("POST", "/v1/tasks", R"({"command": ["true"], "gpus": 1})");
  EXPECT_EQ(status_of(answer), 201);
  EXPECT_THAT(answer, HasSubstr("Location: /v1/tasks/task-1\r\n"));
  EXPECT_EQ(get("/v1/tasks/task-1").at("state"), "running");
  EXPECT_EQ(get("/v1/tasks").at("tasks").size(), 1u);
  EXPECT_EQ(get("/v1/tasks/task-1/explain").at("reasons").size(), 1u);
  EXPECT_EQ(status_of(ask("DELETE", "/v1/tasks/task-1")), 409);
  EXPECT_EQ(status_of(ask("POST", "/v1/tasks/task-1/stop", R"({"force": true})")), 200);
  EXPECT_THAT(server_.daemon().stops, ::testing::ElementsAre(std::pair<std::string, bool>("task-1", true)));
  EXPECT_EQ(get("/v1/tasks/task-1").at("exit_status"), 137);
  const auto removed = ask("DELETE", "/v1/tasks/task-1");
  EXPECT_EQ(status_of(removed), 204);
  EXPECT_EQ(body_of(removed), "");
  EXPECT_EQ(status_of(ask("GET", "/v1/tasks/task-1")), 404);
}

TEST(ServerAudit, AChangeIsTiedToWhatItMadeAndToItsRequest) {
  std::vector<std::string> lines;
  ServerOptions options;
  options.audit = [&lines](const std::string& line) { lines.push_back(line); };
  testing::ServerFixture server(options);
  const auto submit = [&](const std::string& id) {
    const auto header = "Content-Type: application/json\r\nX-Request-Id: " + id + "\r\n";
    return status_of(server.exchange("POST", "/v1/tasks", R"({"command": ["true"]})", header));
  };
  EXPECT_EQ(submit("7f3a-1"), 201);
  EXPECT_EQ(submit("x audit user=eve"), 201);
  const auto told = server.on_strand([&] { return lines; });
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[0], ::testing::EndsWith("path=/v1/tasks status=201 made=/v1/tasks/task-1 request=7f3a-1"));
  EXPECT_THAT(told[1], ::testing::EndsWith("made=/v1/tasks/task-2")) << "that is no id";
}

TEST_F(ServerTest, EveryMistakeIsNamedAtOnce) {
  const auto answer = ask("POST", "/v1/tasks", R"({"comand": ["true"], "gpus": 1.5, "cpus": -1})");
  EXPECT_EQ(status_of(answer), 400);
  const auto error = json::parse(body_of(answer)).at("error");
  EXPECT_EQ(error.at("kind"), "invalid");
  for (const auto* path : {"/comand", "/gpus", "/cpus"})
    EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr(path));
}

TEST_F(ServerTest, BodiesThatAreNoJson) {
  for (const auto* body : {"{", "[]", "\"text\"", "{\"command\":\"\\ud800\"}", "\xff"})
    EXPECT_EQ(status_of(ask("POST", "/v1/tasks", body)), 400) << body;
  EXPECT_EQ(status_of(ask("POST", "/v1/tasks", std::string(100'000, '{'))), 400);
  EXPECT_EQ(status_of(ask("POST", "/v1/tasks")), 400);
  EXPECT_EQ(status_of(ask("POST", "/v1/tasks/x/stop", R"({"forse": true})")), 400);
}

TEST_F(ServerTest, WrongWaysIn) {
  EXPECT_EQ(status_of(ask("GET", "/nothing")), 404);
  EXPECT_EQ(status_of(ask("GET", "/v1/tasks/")), 404);
  const auto wrong_method = ask("DELETE", "/v1/tasks");
  EXPECT_EQ(status_of(wrong_method), 405);
  EXPECT_THAT(wrong_method, HasSubstr("Allow: GET, HEAD, POST\r\n"));
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send(
      "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
      "text/plain\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(status_of(connection.receive()), 415);
  EXPECT_EQ(status_of(ask("GET", "/v1/tasks?colour=red")), 400);
  EXPECT_EQ(status_of(ask("GET", "/v1/tasks?x=%zz")), 400);
}

/// Who comes late is not sent everything at once: he may read slowly, and there may be a thousand like him.
TEST_F(ServerTest, WhatHasHappenedBeforeComesInPieces) {
  constexpr int kEvents = 2000;
  const auto id = submit();
  server_.on_strand([&] {
    for (int i = 1; i < kEvents; ++i) server_.daemon().notify("task_running", id);
  });
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto body = body_of(connection.receive("id: 2000\n"));
  int pieces = 0;
  for (std::size_t at = 0; at < body.size(); ++pieces) {
    const auto size = std::stoul(body.substr(at), nullptr, 16);
    EXPECT_LT(size, 40'000U);
    at = body.find('\n', at) + 1 + size + 2;
  }
  EXPECT_GT(pieces, 5);
  for (int number = 1; number <= kEvents; ++number)
    EXPECT_NE(body.find("id: " + std::to_string(number) + "\n"), body.npos) << number;
}

TEST_F(ServerTest, HeadIsGetWithoutTheBody) {
  const auto head = ask("HEAD", "/v1/version");
  EXPECT_EQ(status_of(head), 200);
  EXPECT_THAT(head, HasSubstr("Content-Length: "));
  EXPECT_EQ(body_of(head), "");
  EXPECT_EQ(body_of(ask("HEAD", "/v1/events")), "");
}

TEST_F(ServerTest, OneConnectionTakesManyRequests) {
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send(
      "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n");
  const auto answers = connection.receive();
  EXPECT_THAT(answers, HasSubstr("\"version\""));
  EXPECT_THAT(answers, HasSubstr("\"status\""));
}

TEST_F(ServerTest, TooMuchOfAnything) {
  auto big = RawConnection::to_unix(server_.socket());
  big.send(
      "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "2097152\r\n\r\n");
  EXPECT_TRUE(big.send(std::string(2 << 20, ' ')));
  EXPECT_EQ(status_of(big.receive("}\n")), 413);
  EXPECT_EQ(status_of(ask("GET", "/v1/version", "", "X: " + std::string(20'000, 'x') + "\r\n")), 431);
  auto garbage = RawConnection::to_unix(server_.socket());
  garbage.send("\x16\x03\x01\x02garbage\r\n\r\n");
  EXPECT_EQ(status_of(garbage.receive()), 400);
}

TEST_F(ServerTest, PathsOfTasksAreNotPathsOfFiles) {
  submit();
  for (const auto* target : {"/v1/tasks/..%2f..%2fetc%2fpasswd", "/v1/tasks/%00",
                             "/v1/tasks/../../etc/passwd", "/v1/tasks/task-1%2ffiles"})
    EXPECT_EQ(status_of(ask("GET", target)), 404) << target;
}

TEST_F(ServerTest, WebPagesMayNotUseTheSocket) {
  EXPECT_EQ(status_of(ask("GET", "/v1/version", "", "Origin: http://x\r\n")), 403);
}

TEST_F(ServerTest, FilesOfASandbox) {
  const auto id = submit();
  server_.append(id, "answer", "forty-two");
  server_.append(id, "bytes", std::string("\x00\xff", 2));
  const auto base = "/v1/tasks/" + id + "/files/";
  EXPECT_EQ(get(base + "browse").at("files").at(0).at("name"), "answer");
  const auto page = get(base + "read?path=answer&offset=6&length=2");
  EXPECT_EQ(page.at("data"), "tw");
  EXPECT_EQ(page.at("size"), 9);
  const auto size = get(base + "read?path=answer&offset=-1");
  EXPECT_EQ(size.at("offset"), 9);
  EXPECT_EQ(size.at("data"), "");
  const auto bytes = get(base + "read?path=bytes");
  EXPECT_EQ(bytes.at("encoding"), "base64");
  EXPECT_EQ(bytes.at("data"), "AP8=");
  const auto download = ask("GET", base + "download?path=bytes");
  EXPECT_EQ(body_of(download), std::string("\x00\xff", 2));
  EXPECT_THAT(download, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_EQ(status_of(ask("GET", base + "read?path=../../secret")), 400);
  EXPECT_EQ(status_of(ask("GET", base + "download?path=missing")), 404);
  EXPECT_EQ(status_of(ask("GET", base + "read?path=answer&length=99999999")), 400);
}

TEST_F(ServerTest, LogsUpToNow) {
  const auto id = submit();
  server_.append(id, "stdout", "one\ntwo\n");
  server_.append(id, "stderr", "oh\n");
  EXPECT_THAT(ask("GET", "/v1/tasks/" + id + "/logs"), HasSubstr("one\ntwo\n"));
  EXPECT_THAT(ask("GET", "/v1/tasks/" + id + "/logs?tail=1"), Not(HasSubstr("one")));
  EXPECT_THAT(ask("GET", "/v1/tasks/" + id + "/logs?stream=stderr"), HasSubstr("oh\n"));
  EXPECT_EQ(status_of(ask("GET", "/v1/tasks/" + id + "/logs?stream=stdin")), 400);
}

TEST_F(ServerTest, LogsOfBothOutputsAreEvents) {
  const auto id = submit();
  server_.append(id, "stdout", "one\ntwo\n");
  server_.append(id, "stderr", "oh\n");
  const auto logs = "/v1/tasks/" + id + "/logs?stream=both";
  const auto both = ask("GET", logs);
  EXPECT_THAT(both, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(both, HasSubstr(R"("data":"one\ntwo\n","encoding":"utf-8","stream":"stdout")"));
  EXPECT_THAT(both, HasSubstr(R"("data":"oh\n","encoding":"utf-8","stream":"stderr")"));
  EXPECT_THAT(both, Not(HasSubstr("event: state")));
  EXPECT_THAT(ask("GET", logs + "&tail=1&timestamps=true"), HasSubstr(R"("data":"- oh\n")"));
  EXPECT_THAT(ask("GET", logs + "&tail=1"), Not(HasSubstr("stdout\"")));
  EXPECT_EQ(status_of(ask("GET", logs + "&since=yesteryear")), 400);
  for (const auto* since :
       {"10m", "90", "3650000d", "2026-11-26T10:00:00Z", "2026-11-26T10:00:00.123456%2B01:00"})
    EXPECT_THAT(ask("GET", logs + "&since=" + since), HasSubstr("It is not known when this task wrote"))
        << since;
}

TEST_F(ServerTest, LiveLogsTellOutputStatesAndTheEnd) {
  const auto id = submit();
  server_.append(id, "stdout", "early\n");
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send("GET /v1/tasks/" + id +
                  "/logs?follow=true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(connection.receive("early"), HasSubstr("event: state\n"));
  server_.append(id, "stderr", "late\n");
  EXPECT_THAT(connection.receive("late"), HasSubstr(R"("stream":"stderr")"));
  server_.append(id, "stdout", "last words\n");
  finish(id);
  const auto rest = connection.receive();
  EXPECT_THAT(rest, HasSubstr("last words"));
  EXPECT_THAT(rest.substr(rest.find("last words")), HasSubstr("event: end\n"));
}

TEST_F(ServerTest, ClientsThatVanishAtAnyMomentHurtNobody) {
  const auto id = submit();
  for (int i = 0; i < 200; ++i) {
    auto connection = RawConnection::to_unix(server_.socket());
    connection.send("GET /v1/tasks/" + id + "/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n");
    server_.append(id, "stdout", "more\n");
    if (i % 2 == 0) connection.receive("event: ");
    std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
  }
  EXPECT_EQ(get("/v1/version").at("version"), "1.2.3");
}

TEST_F(ServerTest, LiveLogsGoOnFromAnEventId) {
  const auto id = submit();
  server_.append(id, "stdout", "heard\n");
  auto first = RawConnection::to_unix(server_.socket());
  first.send("GET /v1/tasks/" + id + "/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto begin = first.receive("heard");
  const auto at = begin.find("id: ") + 4;
  const auto event_id = begin.substr(at, begin.find('\n', at) - at);
  first.close();
  server_.append(id, "stdout", "unheard\n");
  finish(id);
  const auto rest =
      ask("GET", "/v1/tasks/" + id + "/logs?follow=true", "", "Last-Event-ID: " + event_id + "\r\n");
  EXPECT_THAT(rest, HasSubstr("\"unheard"));
  EXPECT_THAT(rest, Not(HasSubstr("\"heard")));
}

TEST_F(ServerTest, EventsAreLiveAndResume) {
  const auto id = submit();
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.receive("task_running"), HasSubstr("id: 1\n"));
  finish(id);
  EXPECT_THAT(connection.receive("task_finished"), HasSubstr("id: 2\n"));
  const auto later = get("/v1/events?follow=false&after=1").at("events");
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later.at(0).at("kind"), "task_finished");
}

TEST_F(ServerTest, EventsAreFiltered) {
  const auto id = submit();
  finish(id);
  submit();
  const auto numbers = [&](const std::string& query) {
    std::vector<int> numbers;
    const auto list = get("/v1/events?follow=false" + query);
    for (const auto& event : list.at("events")) numbers.push_back(event.at("number"));
    return numbers;
  };
  EXPECT_THAT(numbers(""), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers("&task=" + id), ElementsAre(1, 2));
  EXPECT_THAT(numbers("&kind=task_finished"), ElementsAre(2));
  EXPECT_THAT(numbers("&kind=task_finished&kind=task_running"), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers("&limit=2"), ElementsAre(2, 3));
  EXPECT_THAT(numbers("&limit=1&kind=task_running"), ElementsAre(3));
  EXPECT_THAT(numbers("&limit=7"), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers("&limit=1&before=3"), ElementsAre(2)) << "the page before";
  EXPECT_THAT(numbers("&since=2030-01-01T00:00:00Z"), IsEmpty());
  EXPECT_THAT(numbers("&until=2030-01-01T00:00:00Z"), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers("&user=nobody-of-that-name"), IsEmpty());
  for (const auto* wrong :
       {"kind=task_runing", "since=yesterday", "limit=0", "before=-1", "task=", "colour=red"})
    EXPECT_EQ(status_of(ask("GET", "/v1/events?follow=false&" + std::string(wrong))), 400) << wrong;
  EXPECT_THAT(body_of(ask("GET", "/v1/events?kind=x")), HasSubstr("task_queued, task_preparing"));
}

TEST_F(ServerTest, LongListsOfEventsComeInPiecesAndLiveOnesMayBeginWithTheNewest) {
  const auto id = submit();
  server_.on_strand([&] {
    for (int i = 1; i < 3000; ++i) server_.daemon().notify("task_running", id);
  });
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send("GET /v1/events?follow=false HTTP/1.0\r\nHost: x\r\n\r\n");
  const auto all = json::parse(body_of(connection.receive())).at("events");
  ASSERT_EQ(all.size(), 3000u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].at("number"), i + 1);
  auto live = RawConnection::to_unix(server_.socket());
  live.send("GET /v1/events?limit=2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto begin = live.receive("id: 3000\n");
  EXPECT_THAT(begin, AllOf(HasSubstr("id: 2999\n"), Not(HasSubstr("id: 2998\n"))));
  finish(id);
  EXPECT_THAT(live.receive("task_finished"), HasSubstr("id: 3001\n"));
}

TEST_F(ServerTest, StoppingEndsLiveAnswersAndRemovesTheSocket) {
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
  connection.receive("\r\n\r\n");
  server_.stop();
  connection.receive();
  EXPECT_NE(::access(server_.socket().c_str(), F_OK), 0);
}

TEST_F(ServerTest, AStaleSocketIsReplacedAndALivingOneIsNot) {
  boost::asio::io_context context;
  ServerOptions options;
  options.socket_path = server_.socket();
  const auto second = Server::start(context, server_.daemon(), options);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("Another daemon serves on"));
  EXPECT_EQ(get("/v1/version").at("version"), "1.2.3");

  const auto stale = server_.folder() + "/stale";
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{AF_UNIX, {}};
    std::strncpy(address.sun_path, stale.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  options.socket_path = stale;
  EXPECT_TRUE(Server::start(context, server_.daemon(), options));
  options.socket_path = server_.folder() + "/file";
  ASSERT_TRUE(write_file(options.socket_path, "precious"));
  EXPECT_FALSE(Server::start(context, server_.daemon(), options));
  EXPECT_EQ(read_file(options.socket_path).value(), "precious");
  options.socket_path = "/tmp/" + std::string(200, 'x');
  EXPECT_FALSE(Server::start(context, server_.daemon(), options));
}

TEST_F(ServerTest, ASocketThatAKilledDaemonLeftToItsChildIsWaitedFor) {
  const auto path = server_.folder() + "/left";
  UniqueFd left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{AF_UNIX, {}};
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(left.get(), 8), 0);
  std::thread child([&] {
    const UniqueFd tried(::accept(left.get(), nullptr, nullptr));
    left.reset();
  });
  boost::asio::io_context context;
  ServerOptions options;
  options.socket_path = path;
  const auto server = Server::start(context, server_.daemon(), options);
  child.join();
  EXPECT_TRUE(server) << server.error().message;
}

/// What a request of another user gets; the first three characters are the status.
std::string ask_as(uid_t uid, const std::string& socket, const std::string& request) {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(1);
    auto connection = RawConnection::to_unix(socket);
    connection.send(request);
    const auto answer = connection.receive();
    const auto written = ::write(ends[1], answer.data(), answer.size());
    ::_exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  const UniqueFd reading(ends[0]);
  const auto answer = read_all(reading.get(), "the answer").value();
  int status = 0;
  ::waitpid(child, &status, 0);
  return answer;
}

TEST_F(ServerTest, OthersTasksAreAsIfTheyWereNotThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const auto id = submit();
  server_.append(id, "stdout", "secret");
  constexpr uid_t kNobody = 65534;
  const auto ask_nobody = [&](const std::string& method, const std::string& target) {
    return ask_as(kNobody, server_.socket(),
                  method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  };
  EXPECT_EQ(json::parse(body_of(ask_nobody("GET", "/v1/tasks"))).at("tasks").size(), 0u);
  const auto task = "/v1/tasks/" + id;
  for (const auto& [method, target] :
       std::vector<std::pair<std::string, std::string>>{{"GET", task},
                                                        {"DELETE", task},
                                                        {"POST", task + "/stop"},
                                                        {"GET", task + "/explain"},
                                                        {"GET", task + "/logs"},
                                                        {"GET", task + "/logs?follow=true"},
                                                        {"GET", task + "/files/browse"},
                                                        {"GET", task + "/files/read?path=stdout"},
                                                        {"GET", task + "/files/download?path=stdout"}})
    EXPECT_EQ(status_of(ask_nobody(method, target)), 404) << method << " " << target;
  EXPECT_EQ(json::parse(body_of(ask_nobody("GET", "/v1/events?follow=false"))).at("events").size(), 0u);
  const std::string body = R"({"command":["true"]})";
  const auto own =
      ask_as(kNobody, server_.socket(),
             "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
             "Content-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(status_of(own), 201);
  EXPECT_EQ(json::parse(body_of(own)).at("task").at("user").at("uid"), kNobody);
}

TEST_F(ServerTest, AGigabyteIsRefusedByItsLengthAndInPieces) {
  auto told = RawConnection::to_unix(server_.socket());
  told.send(
      "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Content-Length: 1073741824\r\n\r\n");
  EXPECT_EQ(status_of(told.receive("}\n")), 413);  // before a byte of it was sent
  auto chunked = RawConnection::to_unix(server_.socket());
  chunked.send(
      "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  const auto piece = "10000\r\n" + std::string(0x10000, ' ') + "\r\n";
  for (int i = 0; i < 20; ++i) chunked.send(piece);
  EXPECT_EQ(status_of(chunked.receive("}\n")), 413);
}

}  // namespace
}  // namespace drover::api
