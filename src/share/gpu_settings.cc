#include "share/gpu_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/shorten.h"

namespace drover::share {
namespace {

constexpr std::chrono::seconds kSmiPatience{15};
constexpr std::uint64_t kMostOutput = 4096;
constexpr std::array<std::string_view, 4> kModes{"Default", "Exclusive_Thread", "Prohibited",
                                                 "Exclusive_Process"};

/// What it says, on one line.
std::string words_of(const Completed& completed) {
  auto words = completed.errors.empty() ? completed.output : completed.errors;
  std::ranges::replace(words, '\n', ' ');
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return shortened(words);
}

Result<std::string> ask_smi(const Programs& programs, std::vector<std::string> arguments,
                            const std::string& purpose) {
  Command command;
  command.arguments = {programs.smi};
  std::ranges::move(arguments, std::back_inserter(command.arguments));
  command.environment = programs.environment;
  command.timeout = kSmiPatience;
  command.output_limit = kMostOutput;
  auto completed = run_command(command);
  if (!completed) return Failure(context(completed.error(), purpose));
  if (completed->exit_status != 0)
    return fail(ErrorKind::kUnsupported, fmt::format("{}: nvidia-smi ended with the status {}: {}", purpose,
                                                     completed->exit_status, words_of(*completed)));
  return std::move(completed->output);
}

}  // namespace

std::string_view name_of(ComputeMode mode) {
  return kModes.at(static_cast<std::size_t>(mode));
}

Status set_interval(const Programs& programs, const std::string& gpu, Interval interval) {
  return ask_smi(programs,
                 {"compute-policy", "-i", gpu, fmt::format("--set-timeslice={}", static_cast<int>(interval))},
                 fmt::format("the time slices of GPU {} could not be set", gpu))
      .map([](auto&&) {});
}

Result<ComputeMode> compute_mode(const Programs& programs, const std::string& gpu) {
  const auto purpose = fmt::format("the compute mode of GPU {} is not known", gpu);
  DROVER_TRY(auto said,
             ask_smi(programs, {"-i", gpu, "--query-gpu=compute_mode", "--format=csv,noheader"}, purpose));
  while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  for (std::size_t mode = 0; mode < kModes.size(); ++mode)
    if (said == kModes[mode]) return static_cast<ComputeMode>(mode);
  return fail(ErrorKind::kUnsupported, fmt::format("{}: nvidia-smi says '{}'", purpose, shortened(said)));
}

Status set_compute_mode(const Programs& programs, const std::string& gpu, ComputeMode mode) {
  return ask_smi(programs, {"-i", gpu, "-c", std::to_string(static_cast<int>(mode))},
                 fmt::format("the compute mode of GPU {} could not be set", gpu))
      .map([](auto&&) {});
}

}  // namespace drover::share
