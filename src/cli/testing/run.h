#pragma once

// The command line, run in the process of the test.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "cli/cli.h"

namespace drover::cli::testing {

/// What a command line gave.
struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

inline Hooks hooks() {
  Hooks result;
  result.version = "1.2.3";
  result.serve = [](const ServeOptions& options) -> Status {
    auto told = options.state + " " + options.socket + " " + options.simulate + " " + options.placement;
    for (const auto& [name, values] : options.attributes)
      for (const auto& value : values) told += " " + name + "=" + value;
    return fail(ErrorKind::kUnavailable, told);
  };
  // Instead of a kubeconfig, a file that holds a URL.
  result.api_server = [](const std::string& kubeconfig, const std::string& context) -> Result<Gateway> {
    DROVER_TRY(const auto url, read_file(kubeconfig));
    Gateway gateway;
    gateway.url = url;
    gateway.token = "of-the-cluster" + context;
    return gateway;
  };
  result.doctor = [] {
    return std::vector<Check>{{"kernel", Check::State::kFound, "Linux", ""},
                              {"runtime", Check::State::kMissing, "no runc", "install runc"}};
  };
  return result;
}

/// Runs the command line in this process; returns its exit status.
inline int run_words(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"drover"};
  for (const auto& word : words) argv.push_back(word.c_str());
  return run_cli(static_cast<int>(argv.size()), argv.data(), hooks());
}

/// The same, with what it writes.
inline Ran drover(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.status = run_words(words);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

}  // namespace drover::cli::testing
