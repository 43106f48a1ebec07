// Values and pure rules of this room: what is written is read again, and what is odd is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>

#include "container/cgroup.h"
#include "container/graceful_stop.h"
#include "container/order.h"
#include "container/runtime.h"
#include "container/runtime_failure.h"
#include "container/shim_process.h"
#include "container/status_file.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RC_GTEST_PROP(OrderProperty, IsReadAsItWasWritten, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
  Order order;
  order.task_id = "t" + *text;
  order.runtime = "/" + *text;
  order.cgroup = "/" + *text;
  order.uid = *rc::gen::arbitrary<uid_t>();
  order.gid = *rc::gen::arbitrary<gid_t>();
  order.grace = std::chrono::milliseconds(*rc::gen::inRange(0, 1'000'000));
  order.root.layers = *rc::gen::container<std::vector<std::string>>(text);
  order.root.read_only = *rc::gen::arbitrary<bool>();
  order.logs.files = *rc::gen::inRange(1, 100);
  const auto read = decode_order(encode(order));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == order);
}

TEST(Order, RefusesWhatIsNoOrder) {
  EXPECT_FALSE(decode_order("{"));
  EXPECT_FALSE(decode_order("{}"));
  EXPECT_FALSE(decode_order(R"({"task_id": "a", "runtime": "/r", "cgroup": "/c", "surprise": 1})"));
}

TEST(Status, IsReadAsItWasWritten) {
  TaskStatus status;
  status.running = Running{42, TimePoint(std::chrono::milliseconds(1'520'290'800'123))};
  status.ending =
      Ending{137, true, true, false, "in \"words\"", TimePoint(std::chrono::milliseconds(1'600'000'000'000))};
  const auto read = decode_status(encode(status)).value();
  EXPECT_EQ(read.running->pid, 42);
  EXPECT_EQ(read.running->started_at, status.running->started_at);
  EXPECT_EQ(read.ending, status.ending);
  EXPECT_FALSE(decode_status(R"({"ending": {"exit_status": 4000}})"));
}

TEST(TaskIds, MakeNoPaths) {
  EXPECT_TRUE(check_task_id("web-1_a.b"));
  for (const char* bad : {"", ".", "..", "../x", "a/b", "-rf", ".hidden", "a b", "a\n"})
    EXPECT_FALSE(check_task_id(bad)) << bad;
  EXPECT_FALSE(check_task_id(std::string(129, 'a')));
}

TEST(Hierarchies, AreReadFromMountinfo) {
  const auto found = parse_hierarchies(
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "30 27 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "31 27 0:27 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n"
      "32 27 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
      "33 27 0:28 / /odd\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0].controllers, ElementsAre("cpu", "cpuacct"));
  EXPECT_THAT(found[1].controllers, ElementsAre("name=systemd"));
  EXPECT_TRUE(found[2].unified);
  EXPECT_EQ(cgroup_mode(found), "hybrid");
  EXPECT_EQ(cgroup_mode({found[0]}), "v1");
  EXPECT_EQ(cgroup_mode({found[2]}), "v2");
  EXPECT_EQ(cgroup_mode({}), "none");
}

TEST(Hierarchies, AServiceIsLeftOnlyWhereThereIsOne) {
  const Hierarchy systemd{"/sys/fs/cgroup/systemd", {"name=systemd"}, false};
  const Hierarchy unified{"/sys/fs/cgroup", {}, true};
  const Hierarchy memory{"/sys/fs/cgroup/memory", {"memory"}, false};
  constexpr auto kGroups = "5:memory:/x\n1:name=systemd:/system.slice/drover.service\n0::/\n";
  EXPECT_TRUE(in_service(systemd, kGroups));
  EXPECT_FALSE(in_service(unified, kGroups));
  EXPECT_FALSE(in_service(memory, kGroups));
  EXPECT_TRUE(in_service(unified, "0::/system.slice/drover.service\n"));
}

TEST(RuntimeVersion, IsTheWordAfterVersion) {
  EXPECT_EQ(parse_runtime_version("runc version 1.1.5+ds1\ncommit: x\n"), "1.1.5");
  EXPECT_EQ(parse_runtime_version("crun version 1.8.1\n"), "1.8.1");
  EXPECT_EQ(parse_runtime_version("nonsense"), "");
}

TEST(RuntimeFailure, TheLogsLastErrorIsTheLastWord) {
  EXPECT_EQ(last_word("{\"level\":\"warning\",\"msg\":\"w\"}\n{\"level\":\"error\",\"msg\":\"first\"}\n"
                      "{\"level\":\"error\",\"msg\":\"second\"}\nnot json\n",
                      "ignored"),
            "second");
  EXPECT_EQ(last_word("", "one\ntwo\n\n"), "two");
  EXPECT_EQ(last_word("", ""), "");
}

TEST(RuntimeFailure, AMissingCommandIsTheTasksMistake) {
  const auto missing = explain_runtime_failure("/usr/sbin/runc",
                                               "runc run failed: unable to start container process: exec: "
                                               "\"nope\": executable file not found in $PATH");
  EXPECT_EQ(missing.kind, ErrorKind::kNotFound);
  EXPECT_EQ(missing.message, "There is no command 'nope' in the container");
  EXPECT_EQ(exit_status_of(missing), 127);
  const auto crun =
      explain_runtime_failure("crun", "executable file `nope` not found in $PATH: No such file or directory");
  EXPECT_EQ(crun.message, missing.message);
  const auto refused = explain_runtime_failure(
      "runc", "runc run failed: unable to start container process: exec: \"/etc/passwd\": permission denied");
  EXPECT_EQ(refused.kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(exit_status_of(refused), 126);
}

TEST(RuntimeFailure, AnythingElseIsSaidInTheRuntimesWords) {
  const auto other = explain_runtime_failure("/usr/bin/crun", "cgroups in hybrid mode not supported");
  EXPECT_EQ(other.kind, ErrorKind::kUnavailable);
  EXPECT_EQ(other.message, "'crun' could not start the container: cgroups in hybrid mode not supported");
  EXPECT_EQ(exit_status_of(other), 125);
  EXPECT_THAT(explain_runtime_failure("crun", "").message, HasSubstr("it did not say why"));
}

TEST(FirstWord, TellsStartedTakenAndWhyNot) {
  EXPECT_EQ(parse_word("started").value(), FirstWord::kStarted);
  EXPECT_EQ(parse_word("taken").value(), FirstWord::kTaken);
  const auto failed = parse_word("failed exhausted no space: at all\nfree some").error();
  EXPECT_EQ(failed.kind, ErrorKind::kExhausted);
  EXPECT_EQ(failed.message, "no space: at all");
  EXPECT_EQ(failed.hint, "free some");
  EXPECT_EQ(parse_word("failed internal why\n").error().message, "why");
  EXPECT_EQ(parse_word("").error().kind, ErrorKind::kInternal);
}

TEST(SignalDisposition, IsDefaultUnlessCaughtOrIgnored) {
  const std::string head = "Name:\tx\nSigBlk:\t0000000000004000\n";
  EXPECT_TRUE(
      has_default_disposition(head + "SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n", SIGTERM));
  EXPECT_FALSE(
      has_default_disposition(head + "SigIgn:\t0000000000004000\nSigCgt:\t0000000000000000\n", SIGTERM));
  EXPECT_FALSE(
      has_default_disposition(head + "SigIgn:\t0000000000000000\nSigCgt:\t0000000000004002\n", SIGTERM));
}

}  // namespace
}  // namespace drover::container
