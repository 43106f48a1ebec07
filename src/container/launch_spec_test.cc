#include "container/launch_spec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover::container {
namespace {

RC_GTEST_PROP(LaunchSpecProperty, IsReadAsItWasWritten, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
  LaunchSpec spec;
  spec.task_id = "t" + *text;
  spec.runtime = "/" + *text;
  spec.cgroup = "/" + *text;
  spec.uid = *rc::gen::arbitrary<uid_t>();
  spec.gid = *rc::gen::arbitrary<gid_t>();
  spec.grace = std::chrono::milliseconds(*rc::gen::inRange(0, 1'000'000));
  spec.root.layers = *rc::gen::container<std::vector<std::string>>(text);
  spec.root.read_only = *rc::gen::arbitrary<bool>();
  spec.working_directory = "/" + *text;
  spec.command = *text;
  spec.takes_input = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) spec.terminal = workload::Terminal{33, 101};
  if (*rc::gen::arbitrary<bool>()) spec.binds = {{*text, "/" + *text, {"rbind", *text}}};
  spec.mounts = "/" + *text;
  if (*rc::gen::arbitrary<bool>()) spec.ids = {300'000};
  if (*rc::gen::arbitrary<bool>())
    spec.devices = {{*text, "c", 195, *rc::gen::arbitrary<std::uint32_t>(), 0640, 1, 2}};
  spec.attempt = *rc::gen::inRange(0, 1000);
  spec.logs.files = *rc::gen::inRange(1, 100);
  if (*rc::gen::arbitrary<bool>()) spec.network = NetworkPlan{{{31000, 80, false}, {31001, 53, true}}};
  if (*rc::gen::arbitrary<bool>()) {
    spec.volumes = {{*text, "/" + *text, *text, *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()}};
    spec.volume_user.uid = spec.uid;
    spec.volume_user.groups = {1, 2};
    spec.volume_user.name = *text;
  }
  if (*rc::gen::arbitrary<bool>()) {
    spec.runtime.clear();
    spec.docker = DockerSpec{"/" + *text, "1.41", "{" + *text, std::chrono::milliseconds(7)};
  }
  const auto read = decode_launch_spec(encode(spec));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == spec);
}

TEST(LaunchSpec, RefusesWhatIsNoLaunchSpec) {
  EXPECT_FALSE(decode_launch_spec("{"));
  EXPECT_FALSE(decode_launch_spec("{}"));
  EXPECT_FALSE(decode_launch_spec(R"({"task_id": "a", "cgroup": "/c"})"))
      << "neither a runtime nor an engine";
  EXPECT_FALSE(decode_launch_spec(R"({"task_id": "a", "runtime": "/r", "cgroup": "/c", "surprise": 1})"));
}

}  // namespace
}  // namespace drover::container
