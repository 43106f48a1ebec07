#include "base/service_manager.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>

#include "base/fake_tree.h"
#include "base/fd.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(ServiceManager, IsToldByItsSocket) {
  FakeTree tree;
  const auto path = tree / "notify";
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  const auto manager = ServiceManager::of_environment();
  EXPECT_EQ(::getenv("NOTIFY_SOCKET"), nullptr) << "children are not the service";
  EXPECT_EQ(manager.watchdog(), 30s);
  manager.notify("READY=1");
  std::array<char, 64> told{};
  ASSERT_EQ(::recv(socket.get(), told.data(), told.size(), 0), 7);
  EXPECT_STREQ(told.data(), "READY=1");
}

TEST(ServiceManager, WhereThereIsNoneNothingHappens) {
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  const auto manager = ServiceManager::of_environment();
  EXPECT_EQ(manager.watchdog(), std::nullopt) << "it is another's";
  manager.notify("READY=1");
}

}  // namespace
}  // namespace drover
