#include "container/graceful_stop.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>

#include "base/files.h"

namespace drover::container {
namespace {

constexpr std::string_view kRuncInit = "Name:\trunc:[";

std::uint64_t signal_mask(std::string_view status, std::string_view field) {
  const auto at = status.find(field);
  if (at == std::string_view::npos) return 0;
  auto value = status.substr(at + field.size());
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  std::uint64_t mask = 0;
  std::from_chars(value.data(), value.data() + value.size(), mask, 16);
  return mask;
}

}  // namespace

bool has_default_disposition(std::string_view status, int signal) {
  const auto handled = signal_mask(status, "\nSigCgt:") | signal_mask(status, "\nSigIgn:");
  return (handled >> (signal - 1) & 1) == 0;
}

GracefulStop::Program GracefulStop::program() const {
  struct stat info{};
  if (::stat(fmt::format("/proc/{}/exe", init_).c_str(), &info) != 0) return program_;
  return {info.st_dev, info.st_ino};
}

void GracefulStop::begin() {
  program_ = program();
  const auto status = read_file(fmt::format("/proc/{}/status", init_));
  // The Go run time of runc's own beginning would take the signal as its end. The task's program will be told
  // instead.
  if (status && status->starts_with(kRuncInit)) return;
  would_die_ = status && has_default_disposition(*status, SIGTERM);
  ::kill(init_, would_die_ ? SIGSTOP : SIGTERM);
  cgroup_->signal_all(SIGTERM, init_);
  cgroup_->signal_all(SIGCONT, init_);  // a halted process could not take the signal
}

void GracefulStop::proceed() {
  if (program() != program_) begin();
  if (!would_die_ || replaced_signal_) return;
  const auto left = cgroup_->processes();
  if (left.empty() || (left.size() == 1 && left.front() == init_)) {
    ::kill(init_, SIGKILL);
    replaced_signal_ = true;
  }
}

}  // namespace drover::container
