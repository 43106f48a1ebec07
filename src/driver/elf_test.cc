#include "driver/elf.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "driver/fake_elf.h"

namespace drover::driver {
namespace {

using testing::Contains;
using testing::HasSubstr;

Result<ElfFile> read_bytes(const std::string& bytes) {
  const UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  if (const auto written = write_all(fd.get(), bytes, "memory"); !written) return Failure(written.error());
  return read_elf(fd.get(), "lib.so");
}

ElfFile example() {
  return {ElfClass::k64, kX86_64, false, "libcuda.so.1", {"libc.so.6", "libm.so.6"}, AbiVersion{2, 3, 99}};
}

TEST(ElfTest, ReadsEveryClassByteOrderAndMachine) {
  EXPECT_TRUE(rc::check([](bool wide, bool big_endian, std::uint16_t machine, bool named, bool noted) {
    ElfFile file{wide ? ElfClass::k64 : ElfClass::k32, machine, big_endian, named ? "libx.so.1" : "", {}, {}};
    file.needed.assign(*rc::gen::inRange(0, 5), "libneeded.so");
    if (noted) file.abi = AbiVersion{2, *rc::gen::arbitrary<std::uint32_t>(), 99};
    const auto read = read_bytes(fake_elf(file));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == file);
  }));
}

TEST(ElfTest, ReadsThisProgram) {
  const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto elf = read_elf(fd.get(), "/proc/self/exe");
  ASSERT_TRUE(elf) << to_string(elf.error());
  EXPECT_THAT(elf->needed, Contains(HasSubstr("libc.so")));
  EXPECT_EQ(elf->elf_class == ElfClass::k64, sizeof(void*) == 8);
}

TEST(ElfTest, WhatIsNoElfFileIsInvalid) {
  for (const auto* text : {"", "#!/bin/sh\n",
                           "\x7f"
                           "EL",
                           "INPUT(libcuda.so.1)"})
    EXPECT_EQ(read_bytes(text).error().kind, ErrorKind::kInvalid);
}

TEST(ElfTest, CutFilesAreErrorsOrWhole) {
  const auto whole = fake_elf(example());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto read = read_bytes(whole.substr(0, size));
    if (read) EXPECT_NE(*read, example()) << size;
  }
}

TEST(ElfTest, DamagedBytesNeverCrash) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint16_t, char>>& changes) {
    auto bytes = fake_elf(example());
    for (const auto& [position, value] : changes) bytes[position % bytes.size()] = value;
    const auto read = read_bytes(bytes);
    if (!read) RC_ASSERT(!read.error().message.empty());
  }));
}

}  // namespace
}  // namespace drover::driver
