#include "container/network/task_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

#include "container/oci_fixture.h"

namespace drover::container {
namespace {

// Inside: a TCP server on port 80 that answers with what it hears, and a UDP one on port 53; one request
// each.
constexpr const char* kEcho = R"(
import socket, threading
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('0.0.0.0', 53))
def answer_datagrams():
    while True:
        data, peer = udp.recvfrom(65536); udp.sendto(b'udp ' + data, peer)
threading.Thread(target=answer_datagrams, daemon=True).start()
tcp = socket.create_server(('127.0.0.1', 80))
print('ready', flush=True)
while True:
    client, _ = tcp.accept()
    data = b''
    while piece := client.recv(65536): data += piece   # until the client says that it has said all
    client.sendall(b'tcp ' + data); client.close()
    if data == b'end': break
)";

class Socket {
 public:
  explicit Socket(int type, in_addr_t address = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(address);
    const timeval patience{.tv_sec = 30};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  bool bind(int port) {
    return ::bind(fd_.get(), at(port), sizeof address_) == 0 && (::listen(fd_.get(), 1), true);
  }
  bool connect(int port) { return ::connect(fd_.get(), at(port), sizeof address_) == 0; }
  int port() {
    socklen_t size = sizeof address_;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address_), &size);
    return ntohs(address_.sin_port);
  }
  std::string ask(const std::string& text) {
    EXPECT_EQ(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    ::shutdown(fd_.get(), SHUT_WR);
    std::string answer;
    std::array<char, 65536> buffer;
    ssize_t count = 0;
    while ((count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0)) > 0) {
      answer.append(buffer.data(), static_cast<std::size_t>(count));
      if (answer.starts_with("udp ")) break;
    }
    return answer;
  }

 private:
  const sockaddr* at(int port) {
    address_.sin_port = htons(static_cast<std::uint16_t>(port));
    return reinterpret_cast<const sockaddr*>(&address_);
  }
  UniqueFd fd_;
  sockaddr_in address_{};
};

int free_port() {
  Socket socket(SOCK_STREAM);
  EXPECT_TRUE(socket.bind(0));
  return socket.port();
}

class TaskNetworkTest : public OciFixture {
 protected:
  Launch bridged(const std::string& name, std::vector<std::string> command) const {
    auto launch = launch_of(name, std::move(command));
    launch.task.network.mode = workload::NetworkMode::kBridge;
    return launch;
  }

  bool await_output(const std::string& id, const std::string& text) const {
    for (int i = 0; i < 3000; ++i) {
      if (sandbox_file(id, "stdout").find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
};

TEST_F(TaskNetworkTest, PortsOfTheMachineLeadInside) {
  auto launch = bridged("echo", {"/usr/bin/python3", "-c", kEcho});
  const int tcp = free_port();
  const int udp = free_port();
  launch.task.network.ports = {{.container_port = 80},
                               {.protocol = workload::PortProtocol::kUdp, .container_port = 53}};
  launch.host_ports = {tcp, udp};
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(await_output(launch.task.id, "ready")) << sandbox_file(launch.task.id, "stderr");
  const std::string large(3'000'000, 'x');
  for (const auto& text : {std::string("hello"), large}) {
    Socket client(SOCK_STREAM);
    ASSERT_TRUE(client.connect(tcp));
    EXPECT_TRUE(client.ask(text) == "tcp " + text);
  }
  Socket sender(SOCK_DGRAM);
  ASSERT_TRUE(sender.connect(udp));
  EXPECT_EQ(sender.ask("hi"), "udp hi");
  // Port 80 itself is the container's own.
  EXPECT_FALSE(Socket(SOCK_STREAM).connect(80));
  Socket last(SOCK_STREAM);
  ASSERT_TRUE(last.connect(tcp));
  last.ask("end");
  EXPECT_EQ(observer_.await_ending(launch.task.id)->exit_status, 0);
  // Nothing of it is left: the port is free again.
  EXPECT_TRUE(Socket(SOCK_STREAM, INADDR_ANY).bind(tcp));
  EXPECT_TRUE(Socket(SOCK_DGRAM, INADDR_ANY).bind(udp));
}

TEST_F(TaskNetworkTest, APortThatSomebodyHasIsToldByItsNumber) {
  Socket foreign(SOCK_STREAM);
  ASSERT_TRUE(foreign.bind(0));
  auto launch = bridged("taken", {"/bin/true"});
  launch.task.network.ports = {{.container_port = 80}};
  launch.host_ports = {foreign.port()};
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(launched.error().message,
            "Port " + std::to_string(foreign.port()) + " is already in use on this machine");
}

TEST_F(TaskNetworkTest, ItIsAloneAndKnowsItsName) {
  const auto launch =
      bridged("alone", {"/bin/sh", "-c",
                        "ls /sys/class/net; python3 -c 'import socket; "
                        "print(socket.gethostbyname(socket.gethostname()), "
                        "socket.gethostbyname(\"localhost\"))'; grep nameserver /etc/resolv.conf"});
  EXPECT_EQ(run(launch).exit_status, 0) << sandbox_file(launch.task.id, "stderr");
  const auto output = sandbox_file(launch.task.id, "stdout");
  EXPECT_NE(output.find("10.0.2.100 127.0.0.1\nnameserver 10.0.2.3\n"), std::string::npos) << output;
  const auto devices = output.substr(0, output.find("10.0.2.100"));
  EXPECT_TRUE(devices == "lo\n" || devices == "lo\ntap0\n") << devices;
}

TEST_F(TaskNetworkTest, TheMachinesNetworkIsTheDefault) {
  const auto launch = launch_of("host", {"/bin/sh", "-c", "readlink /proc/self/ns/net"});
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"),
            std::filesystem::read_symlink("/proc/self/ns/net").string() + "\n");
}

}  // namespace
}  // namespace drover::container
