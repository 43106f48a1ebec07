#include "container/runtime_flaws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::container {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> ids(std::string_view program, std::string_view version,
                             std::string_view changelog = "") {
  std::vector<std::string> found;
  for (const auto& flaw : known_flaws(program, version, changelog)) found.push_back(flaw.id);
  return found;
}

TEST(RuntimeFlaws, AVersionIsKnownForWhatWasMendedLater) {
  EXPECT_THAT(ids("runc", "1.1.13"), ElementsAre("CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565",
                                                 "CVE-2025-52881", "CVE-2026-41579"));
  EXPECT_THAT(ids("runc", "1.4.3"), IsEmpty());
  EXPECT_THAT(ids("crun", "1.8.1"), ElementsAre("CVE-2025-24965", "CVE-2026-47766"));
  EXPECT_THAT(ids("crun", "1.28"), IsEmpty());
  EXPECT_THAT(ids("youki", "0.1.0"), IsEmpty());
}

TEST(RuntimeFlaws, EachLineOfReleasesWasMendedByItself) {
  for (const auto* mended : {"1.2.8", "1.2.9", "1.3.3", "1.4.0-rc.3", "1.4.0", "1.5.0-rc.1", "2.0.0"})
    EXPECT_THAT(ids("runc", mended), Not(Contains("CVE-2025-31133"))) << mended;
  for (const auto* open : {"1.1.15", "1.2.7", "1.3.0", "1.3.2", "1.4.0-rc.2"})
    EXPECT_THAT(ids("runc", open), Contains("CVE-2025-31133")) << open;
  EXPECT_THAT(ids("docker", "25.0.6"), Not(Contains("CVE-2024-41110")));
  EXPECT_THAT(ids("docker", "24.0.9"), Contains("CVE-2024-41110"));
}

TEST(RuntimeFlaws, TheNextVersionWithoutItIsNamed) {
  const auto next = [](std::string_view version) {
    return known_flaws("runc", version, "").back().mended_in;
  };
  EXPECT_EQ(next("1.1.5"), "1.3.6");
  EXPECT_EQ(next("1.3.5"), "1.3.6");
  EXPECT_EQ(next("1.4.0"), "1.4.3");
  EXPECT_EQ(next("1.5.0-rc.2"), "1.5.0-rc.3");
}

TEST(RuntimeFlaws, VersionsAreReadAsProgramsAndPackagesWriteThem) {
  for (const auto* old :
       {"1.1.5", "1.1.5+ds1", "v1.1.5", "1.1.5-dirty", "1.1", "1.0.0-rc95", "1.0.0-rc.95", "1.0.0~rc95"})
    EXPECT_THAT(ids("runc", old), Contains("CVE-2024-21626")) << old;
  EXPECT_THAT(ids("runc", "1.0.0~rc93"), Contains("CVE-2021-30465"));
  EXPECT_THAT(ids("runc", "1.0.0-rc95"), Not(Contains("CVE-2021-30465")));
  EXPECT_THAT(ids("docker", "20.10.24+dfsg1"), Contains("CVE-2024-41110"));
  for (const auto* no_version : {"", "unknown", "1", "1.", "-1.2", ".1.2", "99999999999.1"})
    EXPECT_THAT(ids("runc", no_version), IsEmpty()) << no_version;
}

TEST(RuntimeFlaws, WhatADistributionMendedIsLeftOut) {
  EXPECT_THAT(ids("runc", "1.1.5+ds1", "* CVE-2024-21626: several breakouts"),
              Not(Contains("CVE-2024-21626")));
  EXPECT_THAT(ids("runc", "1.1.5+ds1", "* CVE-2024-21626: several breakouts"), Contains("CVE-2024-45310"));
}

TEST(RuntimeFlaws, WhetherDroverAvoidsItIsSaid) {
  for (const auto& flaw : known_flaws("runc", "1.0.0-rc1", ""))
    EXPECT_EQ(flaw.avoided, flaw.id != "CVE-2019-5736") << flaw.id;
}

}  // namespace
}  // namespace drover::container
