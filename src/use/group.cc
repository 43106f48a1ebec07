#include "use/group.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "container/launcher.h"
#include "metrics/processes.h"

namespace drover::use {
namespace {

constexpr std::uint64_t kMostText = 64 * 1024;  // a container may make interfaces

/// Takes what is before the next `end` off the front.
std::string_view take(std::string_view& text, char end) {
  const auto piece = text.substr(0, text.find(end));
  text.remove_prefix(std::min(piece.size() + 1, text.size()));
  return piece;
}

/// The next word, however many blanks are before it.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return take(text, ' ');
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::string text_at(const std::string& folder, const char* name) {
  return folder.empty() ? "" : read_file(folder + "/" + name, kMostText).value_or("");
}

/// Files in memory that the kernel takes back first are nobody's need.
void set_memory(std::string_view used, std::string_view stat, const char* inactive, const char* anonymous,
                GroupReading& reading) {
  reading.memory_total = number(used);
  if (!reading.memory_total) return;
  const auto all = *reading.memory_total;
  reading.memory = all - std::min(all, line_of(stat, inactive).value_or(0));
  reading.memory_rss = line_of(stat, anonymous);
}

void set_disk(std::string_view text, DiskBytes (*parse)(std::string_view), GroupReading& reading) {
  if (text.empty()) return;
  const auto bytes = parse(text);
  reading.counters.disk_read = bytes.read;
  reading.counters.disk_written = bytes.written;
}

bool is_folder(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// The name of the container's own group, by which an engine has it: "" when there is none.
std::string engines_name(std::string_view cgroups) {
  std::string_view innermost;
  for (const auto group : metrics::cgroup_names(cgroups))
    if (const auto id = metrics::container_of_group(group); !id.empty()) innermost = id;
  return std::string(innermost);
}

std::string cgroups_of(pid_t process) {
  return read_file(fmt::format("/proc/{}/cgroup", process), kMostText).value_or("");
}

}  // namespace

std::optional<std::uint64_t> line_of(std::string_view text, std::string_view name) {
  while (!text.empty())
    if (auto line = take(text, '\n'); take(line, ' ') == name) return number(line);
  return std::nullopt;
}

DiskBytes parse_io_stat(std::string_view text) {
  DiskBytes bytes;
  while (!text.empty()) {
    auto line = take(text, '\n');
    take(line, ' ');  // the device
    while (!line.empty()) {
      auto value = take(line, ' ');
      const auto name = take(value, '=');
      if (name == "rbytes") bytes.read += number(value).value_or(0);
      if (name == "wbytes") bytes.written += number(value).value_or(0);
    }
  }
  return bytes;
}

DiskBytes parse_io_service_bytes(std::string_view text) {
  DiskBytes bytes;
  while (!text.empty()) {
    auto line = take(text, '\n');
    take(line, ' ');  // the device; of the last line, "Total"
    const auto name = take(line, ' ');
    if (name == "Read") bytes.read += number(line).value_or(0);
    if (name == "Write") bytes.written += number(line).value_or(0);
  }
  return bytes;
}

NetworkBytes parse_net_dev(std::string_view text) {
  constexpr int kBetween = 7;  // columns from the bytes that came to those that went
  NetworkBytes bytes;
  while (!text.empty()) {
    auto line = take(text, '\n');
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;  // the two lines of headings
    auto counts = line.substr(colon + 1);
    auto name = line.substr(0, colon);
    if (take_word(name) == "lo") continue;
    bytes.received += number(take_word(counts)).value_or(0);
    for (int i = 0; i < kBetween; ++i) take_word(counts);
    bytes.sent += number(take_word(counts)).value_or(0);
  }
  return bytes;
}

Group Group::find(const std::vector<container::Hierarchy>& hierarchies, const std::string& task,
                  pid_t first) {
  auto path = container::LauncherOptions{}.cgroup_parent + "/" + task;
  const auto is_there = [&](const auto& hierarchy) { return is_folder(hierarchy.mount + path); };
  if (std::ranges::none_of(hierarchies, is_there)) {
    if (first <= 0) return {};
    const auto cgroups = cgroups_of(first);
    const auto found = container::group_of_container(cgroups, engines_name(cgroups));
    if (!found) return {};
    path = *found;
  }
  Group group;
  for (const auto& hierarchy : hierarchies) {
    const auto folder = hierarchy.mount + path;
    if (!is_folder(folder)) continue;
    if (hierarchy.unified) group.unified_ = folder;
    for (const auto& controller : hierarchy.controllers) {
      if (controller == "cpuacct") group.cpu_ = folder;
      if (controller == "memory") group.memory_ = folder;
      if (controller == "blkio") group.disk_ = folder;
    }
  }
  return group;
}

void Group::read_v1(GroupReading& reading) const {
  if (const auto nanos = number(text_at(cpu_, "cpuacct.usage"))) reading.counters.cpu_micros = *nanos / 1000;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto stat = text_at(cpu_, "cpuacct.stat");
  if (const auto user = line_of(stat, "user")) reading.user_seconds = static_cast<double>(*user) / ticks;
  if (const auto system = line_of(stat, "system"))
    reading.system_seconds = static_cast<double>(*system) / ticks;
  set_memory(text_at(memory_, "memory.usage_in_bytes"), text_at(memory_, "memory.stat"),
             "total_inactive_file", "total_rss", reading);
  for (const auto* name : {"blkio.throttle.io_service_bytes", "blkio.throttle.io_service_bytes_recursive"})
    set_disk(text_at(disk_, name), parse_io_service_bytes, reading);  // older kernels lack the second
}

void Group::read_v2(GroupReading& reading) const {
  const auto stat = text_at(unified_, "cpu.stat");
  if (const auto micros = line_of(stat, "usage_usec"); micros && cpu_.empty())
    reading.counters.cpu_micros = *micros;
  const auto seconds = [&](const char* name) {
    const auto micros = line_of(stat, name);
    return micros ? std::optional(static_cast<double>(*micros) / 1e6) : std::nullopt;
  };
  if (!reading.user_seconds) reading.user_seconds = seconds("user_usec");
  if (!reading.system_seconds) reading.system_seconds = seconds("system_usec");
  if (!reading.memory)
    set_memory(text_at(unified_, "memory.current"), text_at(unified_, "memory.stat"), "inactive_file", "anon",
               reading);
  if (disk_.empty()) set_disk(text_at(unified_, "io.stat"), parse_io_stat, reading);
}

GroupReading Group::read() const {
  GroupReading reading;
  read_v1(reading);
  if (!unified_.empty()) read_v2(reading);
  return reading;
}

std::optional<OwnNetwork> OwnNetwork::find(const std::string& task, pid_t first) {
  if (first <= 0) return std::nullopt;
  auto process = Directory::open(fmt::format("/proc/{}", first));
  if (!process) return std::nullopt;
  // By the descriptor: whoever has the number now, this is one process.
  const auto cgroups = process->read("cgroup", kMostText).value_or("");
  const auto names = metrics::cgroup_names(cgroups);
  if (std::ranges::find(names, task) == names.end() && engines_name(cgroups).empty()) return std::nullopt;
  struct stat own{}, its{};
  if (::stat("/proc/self/ns/net", &own) != 0 || ::fstatat(process->fd(), "ns/net", &its, 0) != 0)
    return std::nullopt;
  if (own.st_ino == its.st_ino) return std::nullopt;
  return OwnNetwork(std::move(*process));
}

void OwnNetwork::read(Counters& counters) const {
  const auto text = process_.read("net/dev", kMostText);
  if (!text) return;
  const auto bytes = parse_net_dev(*text);
  counters.network_received = bytes.received;
  counters.network_sent = bytes.sent;
}

}  // namespace drover::use
