#pragma once

// For tests: small but valid ELF libraries of any class, byte order and machine. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/elf.h"

namespace drover::driver {

inline constexpr std::uint16_t kI386 = 3;
inline constexpr std::uint16_t kPower64 = 21;
inline constexpr std::uint16_t kArm = 40;
inline constexpr std::uint16_t kX86_64 = 62;
inline constexpr std::uint16_t kAarch64 = 183;

/// Bytes in either order.
class ByteWriter {
 public:
  explicit ByteWriter(bool big_endian) : big_endian_(big_endian) {}
  void number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes_ += static_cast<char>(value >> 8 * (big_endian_ ? size - 1 - i : i) & 0xffU);
  }
  void text(const std::string& text) { bytes_ += text; }
  const std::string& bytes() const { return bytes_; }

 private:
  bool big_endian_;
  std::string bytes_;
};

/// The library that read_elf() reads back as `file`.
inline std::string fake_elf(const ElfFile& file) {
  const bool wide = file.elf_class == ElfClass::k64;
  const int word = wide ? 8 : 4;
  constexpr std::uint64_t kAddress = 0x10000;  // where the file is loaded: addresses differ from offsets

  std::string strings(1, '\0');
  const auto add = [&](const std::string& text) {
    const auto offset = strings.size();
    strings += text + '\0';
    return offset;
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;
  if (!file.soname.empty()) entries.emplace_back(14, add(file.soname));
  for (const auto& name : file.needed) entries.emplace_back(1, add(name));

  const std::uint64_t segments = file.abi ? 3 : 2;
  const std::uint64_t dynamic = (wide ? 64 : 52) + segments * (wide ? 56 : 32);
  const std::uint64_t dynamic_size = (entries.size() + 2) * 2 * static_cast<std::uint64_t>(word);
  const std::uint64_t note = dynamic + dynamic_size;
  const std::uint64_t strings_at = note + (file.abi ? 32 : 0);
  const std::uint64_t end = strings_at + strings.size();
  entries.emplace_back(5, kAddress + strings_at);
  entries.emplace_back(0, 0);

  ByteWriter out(file.big_endian);
  out.text(std::string("\x7f"
                       "ELF") +
           static_cast<char>(wide ? 2 : 1) + static_cast<char>(file.big_endian ? 2 : 1) + '\x01' +
           std::string(9, '\0'));
  out.number(3, 2);
  out.number(file.machine, 2);
  out.number(1, 4);
  out.number(0, word);               // entry
  out.number(wide ? 64 : 52, word);  // segment table
  out.number(0, word);               // section table
  out.number(0, 4);                  // flags
  out.number(wide ? 64 : 52, 2);
  out.number(wide ? 56 : 32, 2);
  out.number(segments, 2);
  out.number(0, 6);
  const auto segment = [&](std::uint64_t type, std::uint64_t offset, std::uint64_t size) {
    out.number(type, 4);
    if (wide) out.number(4, 4);
    out.number(offset, word);
    out.number(kAddress + offset, word);
    out.number(kAddress + offset, word);
    out.number(size, word);
    out.number(size, word);
    if (!wide) out.number(4, 4);
    out.number(8, word);
  };
  segment(1, 0, end);
  segment(2, dynamic, dynamic_size);
  if (file.abi) segment(4, note, 32);
  for (const auto& [tag, value] : entries) {
    out.number(tag, word);
    out.number(value, word);
  }
  if (file.abi) {
    for (const std::uint64_t value : {4, 16, 1}) out.number(value, 4);
    out.text(std::string("GNU\0", 4));
    for (const std::uint64_t value : {0U, file.abi->major, file.abi->minor, file.abi->patch})
      out.number(value, 4);
  }
  out.text(strings);
  return out.bytes();
}

inline ElfFile library_of(std::uint16_t machine, ElfClass elf_class = ElfClass::k64,
                          std::string soname = "") {
  return {.elf_class = elf_class, .machine = machine, .soname = std::move(soname), .needed = {"libc.so.6"}};
}

}  // namespace drover::driver
