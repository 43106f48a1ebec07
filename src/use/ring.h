#pragma once

// The statistics of one task in a file of a fixed size: what it used in each second of the last minutes, each
// ten seconds of the last hour, each minute of the last day, and over its whole life. A slot stands where its
// time says and is proven by a sum, the figures of the whole life stand there twice and are written in turn:
// a file whose writer was killed at any moment says all but what was just being written. Pure: bytes and
// values. The file itself: file.h.
//
//   0        "DRVRUSE1"
//   64, 512  the totals, with a number that grows and a sum
//   1024     slots of 32 bytes: those of 1 s, of 10 s, of 60 s
// All numbers are little-endian.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "use/columns.h"
#include "workload/use.h"

namespace drover::use {

inline constexpr std::string_view kMagic = "DRVRUSE1";
inline constexpr std::size_t kSlotBytes = 32;
inline constexpr std::size_t kSlotsAt = 1024;

struct Resolution {
  std::uint32_t seconds;  ///< of a slot
  std::uint32_t count;    ///< of slots
  std::uint32_t first;    ///< of its slots, among all
};
inline constexpr std::array<Resolution, 3> kResolutions = {{{1, 300, 0}, {10, 360, 300}, {60, 1440, 660}}};
inline constexpr std::size_t kFileBytes = kSlotsAt + std::size_t{2100} * kSlotBytes;

/// Where the slot of a time is in the file. `time` is a multiple of the resolution.
std::size_t place_of(const Resolution& resolution, std::uint32_t time);

/// Values are kept with three digits and a half.
std::string encode(const Slot& slot);
/// None of bytes that are not whole.
std::optional<Slot> decode_slot(std::string_view bytes);
/// Those of [from, until] in the bytes of a file, in order of time. What is not there is left out.
std::vector<Slot> slots_in(std::string_view file, const Resolution& resolution, std::uint32_t from,
                           std::uint32_t until);
/// One of what several say, which are of a coarser one's time; none of none.
std::optional<Slot> fold(std::span<const Slot> slots, std::uint32_t time);

/// A value over the time in which it was known.
struct Figure {
  double seconds = 0, sum = 0, most = 0;  ///< sum: of the value times seconds

  void add(double value, double for_seconds);
  bool operator==(const Figure&) const = default;
};

/// What the kernel counts, since a container began. UINT64_MAX: it does not.
inline constexpr std::uint64_t kUncounted = UINT64_MAX;
struct Counters {
  std::uint64_t cpu_micros = kUncounted;
  std::uint64_t network_received = kUncounted, network_sent = kUncounted;
  std::uint64_t disk_read = kUncounted, disk_written = kUncounted;

  bool operator==(const Counters&) const = default;
};

/// Of a whole life, all attempts.
struct Totals {
  double seconds = 0;
  std::uint64_t gpus = 0;
  std::array<Figure, kWithMost> figures;
  Counters sum;             ///< over all containers that there were
  Counters last;            ///< of the last one, as it was seen last
  std::uint64_t first = 0;  ///< process of that one

  bool operator==(const Totals&) const = default;
};

/// What was counted since `before`, and takes it in; a counter that went back began anew.
Counters count_on(Totals& totals, const Counters& now);

inline constexpr std::array<std::size_t, 2> kTotalsAt = {64, 512};
struct NumberedTotals {
  std::uint64_t number = 0;
  Totals totals;
};
std::string encode(const NumberedTotals& totals);
/// The newer of both that is whole; none when neither is.
std::optional<NumberedTotals> totals_in(std::string_view file);

workload::Use use_of(const Totals& totals);

}  // namespace drover::use
