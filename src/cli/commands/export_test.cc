// Definitions out of a daemon, and into it again: 'drover export' and 'drover apply' beside each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/testing/cli_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEverything = R"(kind: queue
queue: research/vision
guarantee: {gpus: 1.5}
limit: {cpus: 12.0, gpus: 2, memory: 1099511627776}
timeout: 12h
users: [ann, bob]
weight: 3
---
kind: quota
user: ann
limit: {gpus: 1}
max_priority: 10
---
kind: app
id: /lone
cmd: |
  echo "one: $A"
  sleep 1
env: {A: '1', B: 'yes'}
---
kind: app
id: /shop/db
args: [run, -x]
container:
  docker: {image: 'db:1'}
  type: DOCKER
gpus: 1
labels: {x/y: z}
---
kind: app
id: /shop/front/web
cmd: serve
healthChecks:
- {path: /health, protocol: HTTP}
instances: 3
portDefinitions:
- {port: 10500}
---
kind: group
id: /shop/front
dependencies: [/shop/db]
---
kind: job
name: nightly
command: echo night
disabled: true
gpus: 2
schedule: R/2030-01-31T02:30:00Z/P1D
scheduleTimeZone: Europe/Berlin
---
kind: job
name: after
command: echo then
parents: [nightly]
---
kind: job
name: at-last
command: echo last
parents: [after, nightly]
)";

class ExportTest : public testing::CliTest {
 protected:
  ExportTest() { begin_anew(); }

  /// A daemon that knows nothing but its GPUs.
  void begin_anew() {
    server_.on_strand([this] {
      auto& daemon = server_.daemon();
      auto machine = daemon.state_.machine();
      machine.inventory = daemon.inventory_;
      daemon.state_ = control::restore({}, machine);
    });
  }
  std::string file(const std::string& text) {
    const auto path = ::testing::TempDir() + "export.yaml";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  testing::Ran apply(const std::string& text) { return ask({"apply", "--detach", file(text)}); }
};

TEST_F(ExportTest, GivesWhatWasAppliedAndItIsUnchanged) {
  const auto applied = apply(kEverything);
  ASSERT_EQ(applied.status, 0) << applied.err;
  const auto exported = ask({"export"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("port: 10500")) << "load balancers know it by that";
  EXPECT_THAT(exported.out, HasSubstr("# 1 queue, 1 quota, 3 apps, 1 group, 3 jobs. "));
  // Nothing is there but what was said, nor is anything lost: the text is that of the file, in another order.
  const auto again = apply(exported.out);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("new")));
  EXPECT_THAT(again.out, Not(HasSubstr("→")));
  EXPECT_EQ(ask({"export"}).out, exported.out);
  for (const auto* line :
       {"kind: queue\nqueue: research/vision\nguarantee: {gpus: 1.5}\n", "users: [ann, bob]\n",
        "cmd: |\n  echo \"one: $A\"\n  sleep 1\nenv: {A: '1', B: 'yes'}\n",
        "kind: group\nid: /shop/front\ndependencies: [/shop/db]\n",
        "kind: job\nname: after\ncommand: echo then\nparents: [nightly]\n---\nkind: job\nname: at-last\n"})
    EXPECT_THAT(exported.out, HasSubstr(line));
}

TEST_F(ExportTest, WhatIsAsWhenItIsNotSaidIsNotSaid) {
  ASSERT_EQ(apply("- {kind: queue, queue: plain}\n- {kind: quota, user: ann, limit: {gpus: 1.5}}\n").status,
            0);
  EXPECT_EQ(ask({"export"}).out,
            "# 1 queue, 1 quota. 'drover apply FILE' brings it to a daemon.\n"
            "kind: queue\nqueue: plain\n---\nkind: quota\nuser: ann\nlimit: {gpus: 1.5}\n");
}

TEST_F(ExportTest, AnotherDaemonHasTheSameFromIt) {
  ASSERT_EQ(apply(kEverything).status, 0);
  const auto exported = ask({"export", "--json"}).out;
  begin_anew();
  ASSERT_EQ(json::parse(ask({"export", "--json"}).out), json::array());
  const auto applied = apply(exported);
  ASSERT_EQ(applied.status, 0) << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("/shop/db: new, 1 instance with 1 GPU\n"));
  EXPECT_EQ(ask({"export", "--json"}).out, exported);
}

TEST_F(ExportTest, QueuesAndQuotasAreComparedAndSentTogether) {
  ASSERT_EQ(apply("kind: queue\nqueue: a\nguarantee: {gpus: 1}\nidle_timeout: 30m\n").status, 0);
  // Neither of the two could be set before the other.
  const auto both =
      "- {kind: queue, queue: a/b, guarantee: {gpus: 4}}\n"
      "- {kind: queue, queue: a, guarantee: {gpus: 4, mem: 1GiB}}\n"
      "- {kind: quota, namespace: team, limit: {cpus: 2}}\n";
  const auto dry = ask({"apply", "--dry-run", file(both)});
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_EQ(dry.out,
            "a/b: new, guarantee 4 GPUs, limit -, weight 1, users all\n"
            "a: guarantee.gpus 1 → 4, guarantee.memory none → 1 GiB, idle_timeout 30m → none\n"
            "namespace:team: new, limit 2 CPUs\n");
  const auto real = apply(both);
  EXPECT_EQ(real.status, 0) << real.err;
  EXPECT_EQ(real.out, dry.out);
  EXPECT_THAT(real.err, HasSubstr("The guarantee of 'a/b' cannot be kept"));
  EXPECT_EQ(apply(both).out, "a/b: unchanged\na: unchanged\nnamespace:team: unchanged\n");
  const auto refused =
      apply("- {kind: queue, queue: a/c, guarantee: {gpus: 4}}\n- {kind: queue, queue: d}\n");
  EXPECT_EQ(refused.status, 64);
  EXPECT_THAT(refused.err, HasSubstr("the children of 'a' are together sure of 8000 thousandths of GPUs"));
  EXPECT_THAT(ask({"queue"}).out, Not(HasSubstr("\nd "))) << "all or none";
}

TEST_F(ExportTest, MistakesOfQueuesAndQuotasStandWhereTheyAre) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"kind: queue\nlimit: {gpus: 1}\n", "export.yaml:1:1: /queue: missing"},
      {"kind: queue\nqueue: a b\n", "export.yaml:2:8: /queue: 'a b' is not a name of a queue"},
      {"kind: queue\nqueue: a\nlimit: {mem: lots}\n", "export.yaml:3:14: /limit/mem: "},
      {"kind: queue\nqueue: a\nlimit: {mem: 1GiB, memory: 1GiB}\n",
       "export.yaml:3:14: /limit/mem: the memory is said twice"},
      {"kind: queue\nqueue: a\nlimit: {gpus: 1}\nguarantee: {gpus: 2}\n",
       "export.yaml:4:19: /guarantee/gpus: "},
      {"kind: queue\nqueue: a\nwieght: 2\n", "export.yaml:3:1: /wieght: unknown field 'wieght'"},
      {"kind: queue\nqueue: a\nlimit: 7\n", "export.yaml:3:8: /limit: "},
      {"kind: quota\nuser: a\nnamespace: b\n", "export.yaml:3:12: /namespace: "},
      {"kind: quota\nnamespace: b\nmax_priority: 2\n", "export.yaml:3:15: /max_priority: "},
      {"- {kind: queue, queue: a}\n- {kind: queue, queue: a}\n", "the queue 'a' stands in"},
      {"queue: a\nweight: 2\n", "it is nearest to a queue: that needs 'kind: queue'"}};
  for (const auto& [text, expected] : wrong) {
    const auto ran = ask({"validate", file(text)});
    EXPECT_EQ(ran.status, 64) << text;
    EXPECT_THAT(ran.err, HasSubstr(expected)) << text;
  }
  EXPECT_THAT(ask({"validate", file(kEverything)}).out, HasSubstr("quota 'user:ann' is right\n"));
}

TEST_F(ExportTest, SaysWhatNoDefinitionMakesAgain) {
  EXPECT_EQ(ask({"export"}).out, "# nothing. 'drover apply FILE' brings it to a daemon.\n");
  server_.on_strand([this] {
    control::TaskRecord record;
    record.task.id = "t";
    server_.daemon().state_.tasks.insert_or_assign("t", record);
  });
  EXPECT_THAT(ask({"export"}).out, HasSubstr("# Not in it: 1 task of people.\n"));
  EXPECT_THAT(ask({"export", "--json"}).err, HasSubstr("not in it: 1 task of people"));
}

}  // namespace
}  // namespace drover::cli
