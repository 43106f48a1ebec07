#include "container/network/network_plan.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

using workload::PortProtocol;

TEST(NetworkPlan, ForwardsEachPortInItsProtocols) {
  workload::Network network;
  network.ports = {{.container_port = 80},
                   {.protocol = PortProtocol::kUdp, .container_port = 53},
                   {.protocol = PortProtocol::kBoth}};
  const auto plan = plan_of(network, {31001, 31002, 31003});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->forwards,
            (std::vector<Forward>{
                {31001, 80, false}, {31002, 53, true}, {31003, 31003, false}, {31003, 31003, true}}));
  EXPECT_FALSE(plan_of(network, {31001}));
}

TEST(NetworkPlan, NamesAreFoundThroughItsOwnWayOut) {
  EXPECT_EQ(resolver_text("# made by hand\nnameserver 127.0.0.53\nsearch a.b c\noptions edns0\n"),
            "nameserver 10.0.2.3\nsearch a.b c\noptions edns0\n");
  EXPECT_NE(hosts_text("task-1").find("10.0.2.100 task-1\n"), std::string::npos);
}

}  // namespace
}  // namespace drover::container
