#include "gpu/device.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace drover::gpu {
namespace {

TEST(PciAddressTest, ReadsBothSpellings) {
  const PciAddress expected{0, 0x82, 0, 0};
  EXPECT_EQ(parse_pci_address("0000:82:00.0"), expected);
  EXPECT_EQ(parse_pci_address("00000000:82:00.0"), expected);
  EXPECT_EQ(parse_pci_address("00010004:0C:1F.7"), (PciAddress{0x10004, 0x0c, 0x1f, 7}));
}

TEST(PciAddressTest, RefusesEverythingElse) {
  for (const auto* text : {"", "82:00.0", "0000:82:00", "0000:82:00.", "0000:82:00.8", "0000:82:20.0",
                           "0000:82:00.0 ", " 0000:82:00.0", "0000:8:00.0", "000000000:82:00.0",
                           "0000:82:00.00", "0000.82.00.0", "-000:82:00.0", "0x00:82:00.0"}) {
    const auto address = parse_pci_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().kind, ErrorKind::kInvalid);
  }
}

TEST(PciAddressTest, WhatIsPrintedReadsBack) {
  EXPECT_EQ(to_string(PciAddress{0, 0x82, 0, 0}), "0000:82:00.0");
  EXPECT_TRUE(rc::check([](std::uint32_t domain, std::uint8_t bus, std::uint8_t place) {
    const PciAddress address{domain, bus, place / 8U, place % 8U};
    RC_ASSERT(parse_pci_address(to_string(address)) == address);
  }));
}

}  // namespace
}  // namespace drover::gpu
