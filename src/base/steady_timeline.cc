#include "base/steady_timeline.h"

#include <fmt/format.h>
#include <time.h>

#include <charconv>

#include "base/files.h"

namespace drover {
namespace {

std::chrono::milliseconds time_since_boot() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::milliseconds(time.tv_sec * 1000LL + time.tv_nsec / 1'000'000);
}

}  // namespace

SteadyTimeline::SteadyTimeline(const Clocks& clocks, std::string_view kept) : id_(clocks.boot) {
  boot_ = clocks.wall - clocks.since_boot;
  if (id_.empty() || !kept.starts_with(id_ + " ")) return;
  kept.remove_prefix(id_.size() + 1);
  std::int64_t known = 0;
  if (std::from_chars(kept.data(), kept.data() + kept.size(), known).ec == std::errc())
    boot_ = TimePoint(std::chrono::milliseconds(known));
}

SteadyTimeline SteadyTimeline::resume(const std::string& path) {
  auto boot = read_file("/proc/sys/kernel/random/boot_id").value_or("");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  const auto kept = read_file(path).value_or("");
  SteadyTimeline timeline({boot, time_since_boot(), wall_clock()}, kept);
  if (timeline.text() != kept) (void)write_file(path, timeline.text(), 0600);
  return timeline;
}

std::string SteadyTimeline::text() const {
  return fmt::format("{} {}\n", id_, boot_.time_since_epoch().count());
}

TimePoint SteadyTimeline::now() const {
  return at(time_since_boot());
}

}  // namespace drover
