#include "container/order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover::container {
namespace {

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
  order.working_directory = "/" + *text;
  order.command = *text;
  if (*rc::gen::arbitrary<bool>()) order.binds = {{*text, "/" + *text, {"rbind", *text}}};
  order.mounts = "/" + *text;
  if (*rc::gen::arbitrary<bool>()) order.ids = {300'000};
  if (*rc::gen::arbitrary<bool>())
    order.devices = {{*text, "c", 195, *rc::gen::arbitrary<std::uint32_t>(), 0640, 1, 2}};
  order.attempt = *rc::gen::inRange(0, 1000);
  order.logs.files = *rc::gen::inRange(1, 100);
  if (*rc::gen::arbitrary<bool>()) order.network = NetworkPlan{{{31000, 80, false}, {31001, 53, true}}};
  if (*rc::gen::arbitrary<bool>()) {
    order.volumes = {{*text, "/" + *text, *text, *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()}};
    order.volume_user.uid = order.uid;
    order.volume_user.groups = {1, 2};
    order.volume_user.name = *text;
  }
  if (*rc::gen::arbitrary<bool>()) {
    order.runtime.clear();
    order.docker = DockerOrder{"/" + *text, "1.41", "{" + *text, std::chrono::milliseconds(7)};
  }
  const auto read = decode_order(encode(order));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == order);
}

TEST(Order, RefusesWhatIsNoOrder) {
  EXPECT_FALSE(decode_order("{"));
  EXPECT_FALSE(decode_order("{}"));
  EXPECT_FALSE(decode_order(R"({"task_id": "a", "cgroup": "/c"})")) << "neither a runtime nor an engine";
  EXPECT_FALSE(decode_order(R"({"task_id": "a", "runtime": "/r", "cgroup": "/c", "surprise": 1})"));
}

}  // namespace
}  // namespace drover::container
