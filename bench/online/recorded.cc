#include "recorded.h"

#include <algorithm>

#include "../openb/table.h"

namespace drover::bench {
namespace {

constexpr std::int64_t kMost = 1'000'000'000'000;

TimePoint second(std::int64_t number) {
  return TimePoint(std::chrono::seconds(number));
}

Result<placement::Request> read_request(const Table& table, std::size_t row) {
  placement::Request request;
  DROVER_TRY(request.milli_cpus, table.number(row, "cpu_milli", kMost));
  DROVER_TRY(const auto mib, table.number(row, "memory_mib", kMost));
  request.memory_bytes = static_cast<std::uint64_t>(mib) << 20;
  DROVER_TRY(const auto gpus, table.number(row, "num_gpu", 8));
  DROVER_TRY(const auto milli, table.number(row, "gpu_milli", 1000));
  if (gpus > 0) request.gpus.push_back({static_cast<int>(gpus), {}});
  if (gpus == 1) request.share.milli = static_cast<int>(milli);
  return request;
}

/// Absent when it did not both start and end.
Result<std::optional<std::chrono::milliseconds>> read_duration(const Table& table, std::size_t row) {
  DROVER_TRY(const auto began, table.text(row, "scheduled_time"));
  DROVER_TRY(const auto ended, table.text(row, "deletion_time"));
  if (began.empty() || ended.empty()) return std::nullopt;
  DROVER_TRY(const auto from, table.number(row, "scheduled_time", kMost));
  DROVER_TRY(const auto to, table.number(row, "deletion_time", kMost));
  if (to < from) return table.wrong(row, "deletion_time", "it ended before it started");
  return second(to) - second(from);
}

}  // namespace

Result<std::vector<RecordedJob>> read_recorded_jobs(const std::string& path) {
  DROVER_TRY(const auto table, Table::read(path));
  std::vector<RecordedJob> jobs;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    DROVER_TRY(const auto duration, read_duration(table, row));
    if (!duration) continue;
    RecordedJob recorded;
    recorded.duration = *duration;
    DROVER_TRY(const auto arrival, table.number(row, "creation_time", kMost));
    recorded.arrival = second(arrival);
    DROVER_TRY(recorded.job.id, table.text(row, "name"));
    DROVER_TRY(auto request, read_request(table, row));
    recorded.job.gang.members.push_back(std::move(request));
    jobs.push_back(std::move(recorded));
  }
  std::ranges::sort(jobs, {}, [](const RecordedJob& job) { return std::tie(job.arrival, job.job.id); });
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].job.sequence = i;
  return jobs;
}

}  // namespace drover::bench
