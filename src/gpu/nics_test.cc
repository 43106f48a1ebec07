#include "gpu/nics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_tree.h"

namespace drover::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A PCI function such as "pci0000:00/0000:00:01.0/0000:04:00.0".
std::string add_numa_function(FakeTree& tree, const std::string& path, const std::string& numa_node) {
  const auto place = "sys/devices/" + path;
  tree.file(place + "/numa_node", numa_node + "\n");
  tree.link("sys/bus/pci/devices/" + path.substr(path.rfind('/') + 1), "../../../devices/" + path);
  return place;
}

/// What the kernel shows of one: its own folder, which is below the device, and a link to that folder.
void add_class_device(FakeTree& tree, const std::string& device, const std::string& kind,
                      const std::string& name) {
  const auto place = device + "/" + kind + "/" + name;
  tree.folder(place).link(place + "/device", "../..");
  tree.link("sys/class/" + kind + "/" + name, tree / place);
}

TEST(NicsTest, ListsCardsUnderEachOfTheirNames) {
  FakeTree tree;
  const auto card = add_numa_function(tree, "pci0000:80/0000:80:02.0/0000:82:00.0", "1");
  add_class_device(tree, card, "infiniband", "mlx5_0");
  add_class_device(tree, card, "net", "ib0");
  add_class_device(tree, add_numa_function(tree, "pci0000:00/0000:00:1f.6", "0"), "net", "eno1");
  EXPECT_THAT(find_nics(tree.root()), ElementsAre(Nic{"eno1", 0}, Nic{"ib0", 1}, Nic{"mlx5_0", 1}));
}

TEST(NicsTest, NumaNodeMayBeUnknown) {
  FakeTree tree;
  const auto function = add_numa_function(tree, "pci0000:00/0000:00:03.0", "-1");
  add_class_device(tree, function + "/virtio0", "net", "eth0");
  EXPECT_THAT(find_nics(tree.root()), ElementsAre(Nic{"eth0", std::nullopt}));
}

TEST(NicsTest, WhatIsNoCardIsLeftOut) {
  FakeTree tree;
  tree.folder("sys/devices/virtual/net/lo").link("sys/class/net/lo", "../../devices/virtual/net/lo");
  tree.file("sys/class/net/bonding_masters", "bond0\n");
  const auto controller = add_numa_function(tree, "pci0000:00/0000:00:14.0", "0");
  add_class_device(tree, controller + "/usb1/1-1/1-1:1.0", "net", "usb0");
  EXPECT_THAT(find_nics(tree.root()), IsEmpty());
  EXPECT_THAT(find_nics(tree / "nowhere"), IsEmpty());
}

}  // namespace
}  // namespace drover::gpu
