#include "driver/ld_cache_edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/fake_tree.h"
#include "base/files.h"
#include "base/process.h"
#include "driver/fake_ld_cache.h"
#include "driver/ld_cache.h"

namespace drover::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kFlags = 0x0303;  // of fake_ld_cache too

std::vector<std::string> paths_in(const std::string& cache) {
  std::vector<std::string> paths;
  const auto entries = parse_ld_cache(cache).value();
  for (const auto& entry : entries) paths.push_back(entry.path);
  return paths;
}

TEST(LdCacheEdit, MakesACacheWhereThereIsNone) {
  const auto made = add_to_ld_cache("", {{"libb.so.2", "/l/libb.so.2", kFlags},
                                         {"libb.so.10", "/l/libb.so.10", kFlags},
                                         {"liba.so.1", "/l/liba.so.1", kFlags}});
  EXPECT_THAT(paths_in(made.value()), ElementsAre("/l/libb.so.10", "/l/libb.so.2", "/l/liba.so.1"));
}

TEST(LdCacheEdit, KeepsWhatWasThereButForTheSameNames) {
  for (const bool old_in_front : {false, true}) {
    const auto before = fake_ld_cache({{"libz.so.1", "/usr/lib/libz.so.1"},
                                       {"libcuda.so.1", "/old/libcuda.so.1"},
                                       {"libc.so.6", "/usr/lib/libc.so.6"}},
                                      {.old_in_front = old_in_front});
    const auto made = add_to_ld_cache(before, {{"libcuda.so.1", "/driver/libcuda.so.1", kFlags}});
    EXPECT_THAT(paths_in(made.value()),
                ElementsAre("/usr/lib/libz.so.1", "/driver/libcuda.so.1", "/usr/lib/libc.so.6"));
    EXPECT_EQ(add_to_ld_cache(*made, {{"libcuda.so.1", "/driver/libcuda.so.1", kFlags}}).map(paths_in),
              paths_in(*made));
  }
}

TEST(LdCacheEdit, ForwardCompatibilityOfTheImageStaysPreferred) {
  const auto before = fake_ld_cache({{"libcuda.so.1", "/usr/local/cuda-12.4/compat/libcuda.so.1"}});
  const auto made = add_to_ld_cache(before, {{"libcuda.so.1", "/driver/libcuda.so.1", kFlags}});
  EXPECT_THAT(paths_in(made.value()),
              ElementsAre("/usr/local/cuda-12.4/compat/libcuda.so.1", "/driver/libcuda.so.1"));
}

TEST(LdCacheEdit, RefusesWhatIsDamaged) {
  EXPECT_FALSE(add_to_ld_cache("nonsense", {{"a", "/a", kFlags}}));
  const auto whole = fake_ld_cache({{"liba.so.1", "/l/liba.so.1"}});
  for (std::size_t size = 1; size < whole.size(); ++size)
    (void)add_to_ld_cache(std::string_view(whole).substr(0, size), {{"a", "/a", kFlags}});
  EXPECT_FALSE(add_to_ld_cache(fake_ld_cache({{"a", "/a"}}, {.big_endian = true}), {{"b", "/b", kFlags}}));
  auto unstated = fake_ld_cache({}, {.big_endian = true, .states_byte_order = false});
  unstated[27] = 3;  // so much text, in the other byte order
  unstated += "abc";
  EXPECT_FALSE(add_to_ld_cache(unstated, {{"b", "/b", kFlags}}));
  auto extended = whole;
  extended[32] = 8;  // the extension is said to be in the header
  EXPECT_FALSE(add_to_ld_cache(extended, {{"b", "/b", kFlags}}));
}

/// The real thing: ldconfig of this machine shows a cache of its own, edited here.
TEST(LdCacheEdit, LdconfigReadsWhatIsWritten) {
  const auto host = read_file("/etc/ld.so.cache", kMaxLdCache);
  if (!host || !std::filesystem::exists("/sbin/ldconfig")) GTEST_SKIP() << "no ldconfig on this machine";
  const auto made = add_to_ld_cache(*host, {{"libdrover-test.so.1", "/nowhere/libdrover-test.so.1", kFlags}});
  ASSERT_TRUE(made) << to_string(made.error());
  FakeTree tree;
  tree.file("cache", *made).file("host", *host);
  const auto shown = [&](const std::string& file) {
    Command command;
    command.arguments = {"/sbin/ldconfig", "-p", "-C", tree / file};
    command.environment = minimal_environment();
    return run_command(command).value().output;
  };
  const auto before = shown("host"), after = shown("cache");
  EXPECT_THAT(after, HasSubstr("libdrover-test.so.1 (libc6,x86-64) => /nowhere/libdrover-test.so.1\n"));
  std::istringstream lines(before);
  std::string line;
  std::getline(lines, line);  // the count
  int kept = 0;
  while (std::getline(lines, line)) {
    if (!line.starts_with("\t")) continue;
    EXPECT_THAT(after, HasSubstr(line));
    ++kept;
  }
  EXPECT_GT(kept, 10);
}

}  // namespace
}  // namespace drover::driver
