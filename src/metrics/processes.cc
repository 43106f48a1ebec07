#include "metrics/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/files.h"

namespace drover::metrics {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;  // of a file of a process

/// Takes what is before the next `end` off the front.
std::string_view take(std::string_view& text, char end) {
  const auto piece = text.substr(0, text.find(end));
  text.remove_prefix(std::min(piece.size() + 1, text.size()));
  return piece;
}

}  // namespace

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
    processes[pid] = {std::move(*name), owner_of(*cgroups)};
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
