#include "driver/ld_cache.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "base/files.h"
#include "base/process.h"
#include "driver/fake_ld_cache.h"

namespace drover::driver {
namespace {

const std::vector<LdCacheEntry> kEntries{{"libcuda.so.1", "/usr/lib64/libcuda.so.1"},
                                         {"libc.so.6", "/lib/libc.so.6"}};

TEST(LdCacheTest, ReadsEveryFormat) {
  EXPECT_TRUE(rc::check([](bool big_endian, bool states_byte_order, bool old_in_front) {
    const CacheFormat format{big_endian, states_byte_order, old_in_front,
                             static_cast<std::size_t>(*rc::gen::inRange(0, 6))};
    std::vector<LdCacheEntry> entries;
    for (int i = *rc::gen::inRange(0, 20); i > 0; --i)
      entries.push_back({fmt::format("lib{}.so", i), fmt::format("/lib/lib{}.so", i)});
    const auto read = parse_ld_cache(fake_ld_cache(entries, format));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == entries);
  }));
}

TEST(LdCacheTest, IgnoresWhatLiesBehindTheStrings) {
  EXPECT_EQ(parse_ld_cache(fake_ld_cache(kEntries) + "an extension of a later glibc"), kEntries);
}

TEST(LdCacheTest, ReadsTheCacheOfThisMachine) {
  const auto bytes = read_file("/etc/ld.so.cache");
  const auto ldconfig = find_program("/sbin/ldconfig");
  if (!bytes || !ldconfig) GTEST_SKIP() << "this machine has no loader cache, or no ldconfig";
  const auto read = parse_ld_cache(*bytes);
  ASSERT_TRUE(read) << to_string(read.error());
  const auto listed = run_command({.arguments = {*ldconfig, "-p"}, .environment = minimal_environment()});
  ASSERT_TRUE(listed);
  std::size_t matching = 0;
  for (const auto& entry : *read)
    if (listed->output.find(fmt::format("\t{} (", entry.name)) != std::string::npos &&
        listed->output.find(fmt::format("=> {}\n", entry.path)) != std::string::npos)
      ++matching;
  EXPECT_GT(matching, 0U);
  EXPECT_EQ(matching, read->size());
  EXPECT_EQ(read->size(), static_cast<std::size_t>(std::ranges::count(listed->output, '>')));
}

TEST(LdCacheTest, RefusesOtherFiles) {
  for (const auto& bytes : {std::string(), std::string("ld.so-1.7.0"), std::string(100, '\0'),
                            std::string("\x7f"
                                        "ELF")}) {
    const auto read = parse_ld_cache(bytes);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(LdCacheTest, EveryCutIsAnError) {
  for (const bool old_in_front : {false, true}) {
    const auto whole = fake_ld_cache(kEntries, {.old_in_front = old_in_front});
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(parse_ld_cache(whole.substr(0, size))) << size;
  }
}

TEST(LdCacheTest, DamagedBytesNeverCrash) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint16_t, char>>& changes, bool old_in_front) {
    auto bytes = fake_ld_cache(kEntries, {.old_in_front = old_in_front});
    for (const auto& [position, value] : changes) bytes[position % bytes.size()] = value;
    const auto read = parse_ld_cache(bytes);
    if (read) RC_ASSERT(read->size() <= bytes.size());
  }));
}

TEST(LdCacheTest, SharedTextCannotFillTheMemory) {
  // A hundred thousand entries that all point at one long name.
  ByteWriter out(false);
  const std::uint64_t count = 100'000;
  out.text("glibc-ld.so.cache1.1");
  out.number(count, 4);
  out.number(4096, 4);
  out.number(2, 1);
  out.text(std::string(19, '\0'));
  for (std::uint64_t i = 0; i < count; ++i) {
    out.number(3, 4);
    out.number(48 + count * 24, 4);
    out.number(48 + count * 24, 4);
    out.text(std::string(12, '\0'));
  }
  out.text(std::string(4095, 'x') + '\0');
  const auto read = parse_ld_cache(out.bytes());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::HasSubstr("too much text"));
}

}  // namespace
}  // namespace drover::driver
