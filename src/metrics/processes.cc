#include "metrics/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "base/files.h"

namespace drover::metrics {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;  // of a file of a process
constexpr std::size_t kDigitsOfContainer = 64;

/// Takes what is before the next `end` off the front.
std::string_view take(std::string_view& text, char end) {
  const auto piece = text.substr(0, text.find(end));
  text.remove_prefix(std::min(piece.size() + 1, text.size()));
  return piece;
}

/// Who is in a container may make groups of any name within its own: the outermost is the engine's.
std::string container_of(std::string_view cgroups) {
  for (const auto group : cgroup_names(cgroups))
    if (const auto id = container_of_group(group); !id.empty()) return std::string(id);
  return "";
}

/// The words of a line of /proc/PID/status. The kernel writes line ends in a name as "\n".
std::string_view status_line(std::string_view status, std::string_view name) {
  while (!status.empty())
    if (auto line = take(status, '\n'); take(line, '\t') == name) return line;
  return "";
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

void add_status(std::string_view status, ProcessFacts& facts) {
  facts.uid = number_in(status_line(status, "Uid:"));
  const auto pids = status_line(status, "NSpid:");  // of each namespace, from that of /proc to its own
  if (const auto inner = pids.rfind('\t'); inner != std::string_view::npos)
    facts.inner_pid = number_in(pids.substr(inner + 1));
}

}  // namespace

std::string_view container_of_group(std::string_view group) {
  std::size_t digits = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    digits = std::isxdigit(static_cast<unsigned char>(group[i])) != 0 ? digits + 1 : 0;
    if (digits == kDigitsOfContainer) return group.substr(i + 1 - digits, digits);
  }
  return "";
}

std::vector<std::string_view> cgroup_names(std::string_view cgroups) {
  std::vector<std::string_view> names;
  while (!cgroups.empty()) {
    auto line = take(cgroups, '\n');
    take(line, ':');  // the hierarchy
    take(line, ':');  // its controllers
    while (!line.empty())
      if (const auto name = take(line, '/'); !name.empty()) names.push_back(name);
  }
  return names;
}

std::map<std::uint32_t, ProcessFacts> read_processes(const std::string& proc,
                                                     const std::map<std::string, gpu::GpuUsage>& usage,
                                                     const OwnerOf& owner_of) {
  std::set<std::uint32_t> pids;
  for (const auto& [uuid, gpu] : usage)
    for (const auto& process : gpu.processes) pids.insert(process.pid);
  std::map<std::uint32_t, ProcessFacts> processes;
  for (const auto pid : pids) {
    const auto folder = fmt::format("{}/{}", proc, pid);
    const auto cgroups = read_file(folder + "/cgroup", kMostBytes);
    auto name = read_file(folder + "/comm", kMostBytes);
    if (!cgroups || !name) continue;
    while (name->ends_with('\n')) name->pop_back();
    auto& facts = processes[pid] = {std::move(*name), owner_of(*cgroups)};
    facts.container = container_of(*cgroups);
    add_status(read_file(folder + "/status", kMostBytes).value_or(""), facts);
  }
  return processes;
}

std::optional<ProcessStat> process_stat(const std::string& file) {
  constexpr int kBeforeStart = 19;  // fields between the name and the time of its start: proc(5)
  const auto text = read_file(file, kMostBytes).value_or("");
  const auto name = text.find('('), end = text.rfind(") ");
  if (name == std::string::npos || end == std::string::npos || end < name || end + 2 >= text.size())
    return std::nullopt;
  ProcessStat stat{text.substr(name + 1, end - name - 1), text[end + 2]};
  auto rest = std::string_view(text).substr(end + 2);
  for (int field = 0; field < kBeforeStart; ++field) take(rest, ' ');
  const auto started = take(rest, ' ');
  std::from_chars(started.data(), started.data() + started.size(), stat.started);
  return stat;
}

std::optional<ProcessState> process_state(const std::string& proc, pid_t pid) {
  auto stat = process_stat(fmt::format("{}/{}/stat", proc, pid));
  if (!stat || has_ended(*stat)) return std::nullopt;
  return ProcessState{pid, std::move(stat->name), stat->state == 'D'};
}

}  // namespace drover::metrics
