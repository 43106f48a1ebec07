#include "gpu/device_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fake_tree.h"

namespace drover::gpu {
namespace {

using testing::ElementsAre;

class DeviceFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "making device files needs root";
    make("nvidia2", 195, 2);
    make("nvidiactl", 195, 255);
  }
  void make(const char* name, unsigned major, unsigned minor) {
    ASSERT_EQ(::mknod((tree_ / name).c_str(), S_IFCHR | 0600, ::makedev(major, minor)), 0);
  }
  FakeTree tree_;
};

TEST_F(DeviceFilesTest, NumbersComeFromTheFile) {
  EXPECT_EQ(gpu_device_node(tree_.root(), 2), (DeviceNode{"/dev/nvidia2", 195, 2}));
}

TEST_F(DeviceFilesTest, ControlDevicesAreThoseThatAreThere) {
  EXPECT_THAT(*control_device_nodes(tree_.root()), ElementsAre(DeviceNode{"/dev/nvidiactl", 195, 255}));
  tree_.folder("nvidia-caps").folder("nvidia-caps-imex-channels");
  make("nvidia-uvm", 511, 0);
  make("nvidia-uvm-tools", 511, 1);
  EXPECT_THAT(*control_device_nodes(tree_.root()),
              ElementsAre(DeviceNode{"/dev/nvidiactl", 195, 255}, DeviceNode{"/dev/nvidia-uvm", 511, 0},
                          DeviceNode{"/dev/nvidia-uvm-tools", 511, 1}));
}

TEST_F(DeviceFilesTest, TheFolderIsThatWithMostControlDevices) {
  FakeTree driver, empty;
  EXPECT_EQ(device_folder_of({empty.root(), tree_.root()}), tree_.root());
  EXPECT_EQ(device_folder_of({empty.root(), driver.root()}), empty.root());
  for (const auto* name : {"nvidiactl", "nvidia-uvm"})
    ASSERT_EQ(::mknod((driver / name).c_str(), S_IFCHR | 0600, ::makedev(195, 255)), 0);
  EXPECT_EQ(device_folder_of({tree_.root(), driver.root()}), driver.root());
  make("nvidia-uvm", 511, 0);
  EXPECT_EQ(device_folder_of({tree_.root(), driver.root()}), tree_.root());
}

TEST_F(DeviceFilesTest, WhatIsMissingOrNoDeviceIsAnError) {
  EXPECT_EQ(gpu_device_node(tree_.root(), 0).error().kind, ErrorKind::kNotFound);
  tree_.file("nvidia1", "").folder("nvidia3").folder("nvidia-uvm");
  EXPECT_EQ(gpu_device_node(tree_.root(), 1).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(gpu_device_node(tree_.root(), 3).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(control_device_nodes(tree_.root()).error().kind, ErrorKind::kInvalid);
  FakeTree empty;
  EXPECT_EQ(control_device_nodes(empty.root()).error().kind, ErrorKind::kNotFound);
}

TEST_F(DeviceFilesTest, ScreensOfNvidiaAreKnownByTheirCards) {
  tree_.file("drm/renderD128/device/vendor", "0x10de\n").file("drm/renderD128/dev", "226:128\n");
  tree_.file("drm/renderD129/device/vendor", "0x8086\n").file("drm/renderD129/dev", "226:129\n");
  tree_.file("drm/card0-DP-1/device/vendor", "0x10de\n");
  tree_.file("drm/version", "drm 1.1.0 20060810\n");
  EXPECT_THAT(nvidia_screen_nodes(tree_.root() + "/drm"),
              ElementsAre(DeviceNode{"/dev/dri/renderD128", 226, 128}));
  EXPECT_THAT(nvidia_screen_nodes(tree_.root() + "/nothing"), ElementsAre());
}

}  // namespace
}  // namespace drover::gpu
