#pragma once

// What flags have in common: how they are declared, and how their values are refused.

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::cli {

/// A flag with a value, which is not empty.
CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const char* type,
                      const char* help);
/// A flag with a value that may be given several times.
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                      const char* type, const char* help);

/// Names the flag that an error is about.
template <typename T>
Result<T> of_flag(Result<T> result, std::string_view flag) {
  if (!result) return Failure(context(result.error(), flag));
  return result;
}

/// "--gpus: 'x' is not a number of GPUs"
Failure bad_value(std::string_view flag, std::string_view value, std::string_view expected, std::string hint);

std::optional<std::int64_t> whole_number(std::string_view text);
Result<nlohmann::json> parse_whole(const std::string& text, std::string_view flag);

}  // namespace drover::cli
