#include "use/ring.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace drover::use {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");
static_assert(std::is_trivially_copyable_v<Totals>);

template <typename T>
void append(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T read_at(std::string_view bytes, std::size_t at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// FNV-1a, which of bytes that are all zero is none itself.
std::uint32_t sum_of(std::string_view bytes) {
  std::uint32_t sum = 2166136261U;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 16777619U;
  return sum;
}

// A value in 16 bits: six of exponent, ten of mantissa, from millionths to 2^52.
constexpr std::uint16_t kAbsent = 0xFFFF;
constexpr int kBias = 11, kMantissa = 1024, kMostExponent = 62;
constexpr double kUnit = 1.0 / (1 << 20);  // of the smallest

std::uint16_t pack(const std::optional<double>& value) {
  if (!value || std::isnan(*value)) return kAbsent;
  constexpr std::uint16_t kMost = kMostExponent * kMantissa + kMantissa - 1;
  if (*value <= 0) return 0;
  int exponent = 0;
  const double part = 2 * std::frexp(*value, &exponent);
  exponent += kBias - 1;
  if (exponent > kMostExponent) return kMost;
  // A mantissa that is rounded up carries over into the exponent, as it should.
  const double code = exponent < 1 ? *value / kUnit : exponent * kMantissa + (part - 1) * kMantissa;
  return static_cast<std::uint16_t>(std::min<double>(std::round(code), kMost));
}

std::optional<double> unpack(std::uint16_t code) {
  if (code == kAbsent) return std::nullopt;
  const int exponent = code / kMantissa, mantissa = code % kMantissa;
  if (exponent == 0) return mantissa * kUnit;
  return std::ldexp(1.0 + static_cast<double>(mantissa) / kMantissa, exponent - kBias);
}

constexpr std::size_t kTotalsBytes = sizeof(std::uint64_t) + sizeof(Totals);
static_assert(kTotalsBytes + sizeof(std::uint32_t) <= kTotalsAt[1] - kTotalsAt[0]);

std::uint64_t Counters::* const kCounters[] = {&Counters::cpu_micros, &Counters::network_received,
                                               &Counters::network_sent, &Counters::disk_read,
                                               &Counters::disk_written};

/// What a record keeps is what it is read as again.
double thousandths(double value) {
  return std::round(value * 1000) / 1000;
}

std::optional<std::uint64_t> counted(std::uint64_t counter) {
  return counter == kUncounted ? std::nullopt : std::optional(counter);
}

}  // namespace

std::size_t place_of(const Resolution& resolution, std::uint32_t time) {
  return kSlotsAt + (resolution.first + time / resolution.seconds % resolution.count) * kSlotBytes;
}

std::string encode(const Slot& slot) {
  std::string bytes;
  append(bytes, slot.time);
  for (const auto& value : slot.mean) append(bytes, pack(value));
  for (const auto& value : slot.most) append(bytes, pack(value));
  append(bytes, sum_of(bytes));
  return bytes;
}

std::optional<Slot> decode_slot(std::string_view bytes) {
  constexpr auto kSum = kSlotBytes - sizeof(std::uint32_t);
  if (bytes.size() < kSlotBytes) return std::nullopt;
  if (read_at<std::uint32_t>(bytes, kSum) != sum_of(bytes.substr(0, kSum))) return std::nullopt;
  Slot slot;
  slot.time = read_at<std::uint32_t>(bytes, 0);
  std::size_t at = sizeof slot.time;
  const auto next = [&] { return unpack(read_at<std::uint16_t>(bytes, std::exchange(at, at + 2))); };
  for (auto& value : slot.mean) value = next();
  for (auto& value : slot.most) value = next();
  return slot;
}

std::vector<Slot> slots_in(std::string_view file, const Resolution& resolution, std::uint32_t from,
                           std::uint32_t until) {
  std::vector<Slot> slots;
  for (std::uint32_t i = 0; i < resolution.count; ++i) {
    const auto at = kSlotsAt + (resolution.first + i) * kSlotBytes;
    if (at + kSlotBytes > file.size()) break;
    auto slot = decode_slot(file.substr(at, kSlotBytes));
    if (!slot || slot->time < from || slot->time > until) continue;
    if (slot->time % resolution.seconds == 0 && place_of(resolution, slot->time) == at)
      slots.push_back(std::move(*slot));
  }
  std::ranges::sort(slots, {}, &Slot::time);
  return slots;
}

std::optional<Slot> fold(std::span<const Slot> slots, std::uint32_t time) {
  if (slots.empty()) return std::nullopt;
  Slot folded{time, {}, {}};
  for (std::size_t column = 0; column < kColumns; ++column) {
    double sum = 0;
    int known = 0;
    for (const auto& slot : slots)
      if (slot.mean[column]) sum += *slot.mean[column], ++known;
    if (known > 0) folded.mean[column] = sum / known;
  }
  for (std::size_t column = 0; column < kWithMost; ++column)
    for (const auto& slot : slots)
      if (slot.most[column])
        folded.most[column] = std::max(folded.most[column].value_or(0), *slot.most[column]);
  return folded;
}

void Figure::add(double value, double for_seconds) {
  seconds += for_seconds;
  sum += value * for_seconds;
  most = std::max(most, value);
}

Counters count_on(Totals& totals, const Counters& now) {
  Counters since;
  for (const auto member : kCounters) {
    const auto is = now.*member, was = totals.last.*member;
    if (is == kUncounted) continue;
    since.*member = was == kUncounted || is < was ? is : is - was;
    auto& sum = totals.sum.*member;
    sum = (sum == kUncounted ? 0 : sum) + since.*member;
    totals.last.*member = is;
  }
  return since;
}

std::string encode(const NumberedTotals& totals) {
  std::string bytes;
  append(bytes, totals.number);
  append(bytes, totals.totals);
  append(bytes, sum_of(bytes));
  return bytes;
}

std::optional<NumberedTotals> totals_in(std::string_view file) {
  std::optional<NumberedTotals> newest;
  for (const auto at : kTotalsAt) {
    if (file.size() < at + kTotalsBytes + sizeof(std::uint32_t)) continue;
    const auto bytes = file.substr(at, kTotalsBytes);
    if (read_at<std::uint32_t>(file, at + kTotalsBytes) != sum_of(bytes)) continue;
    const auto number = read_at<std::uint64_t>(bytes, 0);
    if (newest && newest->number >= number) continue;
    newest = NumberedTotals{number, read_at<Totals>(bytes, sizeof number)};
  }
  return newest;
}

workload::Use use_of(const Totals& totals) {
  workload::Use use;
  use.seconds = thousandths(totals.seconds);
  use.gpus = static_cast<int>(totals.gpus);
  const auto mean = [](const Figure& figure) { return figure.sum / figure.seconds; };
  if (const auto& gpu = totals.figures[kGpuPercent]; gpu.seconds > 0) {
    use.gpu_percent_mean = thousandths(mean(gpu));
    use.gpu_percent_max = thousandths(gpu.most);
    use.gpu_seconds_used = thousandths(gpu.sum / 100 * static_cast<double>(totals.gpus));
  }
  if (const auto& memory = totals.figures[kGpuMemory]; memory.seconds > 0) {
    use.gpu_memory_bytes_mean = static_cast<std::uint64_t>(mean(memory));
    use.gpu_memory_bytes_max = static_cast<std::uint64_t>(memory.most);
  }
  if (const auto cpu = counted(totals.sum.cpu_micros))
    use.cpu_seconds = thousandths(static_cast<double>(*cpu) / 1e6);
  if (const auto& cpus = totals.figures[kCpus]; cpus.seconds > 0) use.cpus_max = thousandths(cpus.most);
  if (const auto& memory = totals.figures[kMemory]; memory.seconds > 0) {
    use.memory_bytes_mean = static_cast<std::uint64_t>(mean(memory));
    use.memory_bytes_max = static_cast<std::uint64_t>(memory.most);
  }
  use.network_received_bytes = counted(totals.sum.network_received);
  use.network_sent_bytes = counted(totals.sum.network_sent);
  use.disk_read_bytes = counted(totals.sum.disk_read);
  use.disk_written_bytes = counted(totals.sum.disk_written);
  return use;
}

}  // namespace drover::use
