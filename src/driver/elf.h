#pragma once

// The few facts of an ELF file that decide whether and where a driver library goes: class, machine, SONAME,
// needed libraries, ABI note. Reads both classes and byte orders, a few kilobytes of a file however
// large, and trusts no offset. An own reader, because libelf would bring a dependency for five facts. Thread
// safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::driver {

enum class ElfClass { k32, k64 };

struct AbiVersion {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;

  bool operator==(const AbiVersion&) const = default;
};

struct ElfFile {
  ElfClass elf_class = ElfClass::k64;
  std::uint16_t machine = 0;  ///< EM_…: 62 x86-64, 183 AArch64, 21 POWER
  bool big_endian = false;
  std::string soname;               ///< "" when it has none
  std::vector<std::string> needed;  ///< in the file's order
  std::optional<AbiVersion> abi;    ///< oldest kernel, from the note ABI-tag, when it has one

  bool operator==(const ElfFile&) const = default;
};

/// `fd` must be seekable; `name` is for messages. kInvalid when it is no ELF file, kCorrupt when it is
/// damaged.
Result<ElfFile> read_elf(int fd, const std::string& name);

}  // namespace drover::driver
