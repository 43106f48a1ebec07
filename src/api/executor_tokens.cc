#include "api/executor_tokens.h"

#include <fmt/format.h>

#include <utility>

#include "api/secret_file.h"

namespace drover::api {
namespace {

constexpr std::string_view kTokenBegin = "executor.";

}  // namespace

Result<ExecutorTokens> ExecutorTokens::open(const std::string& path) {
  return open_key(path, "The key of executors' tokens",
                  "remove it: executors that run are ended then, and their frameworks start them anew")
      .map([](std::string&& key) { return ExecutorTokens(std::move(key)); });
}

std::string ExecutorTokens::of(const std::string& task) const {
  return fmt::format("{}{}.{}", kTokenBegin, task, code_of(key_, task));
}

std::optional<std::string> ExecutorTokens::task_of(std::string_view token) const {
  const auto dot = token.rfind('.');
  if (!token.starts_with(kTokenBegin) || dot < kTokenBegin.size() || dot == token.npos) return std::nullopt;
  std::string task(token.substr(kTokenBegin.size(), dot - kTokenBegin.size()));
  if (!is_same_secret(of(task), token)) return std::nullopt;
  return task;
}

}  // namespace drover::api
