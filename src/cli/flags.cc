#include "cli/flags.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace drover::cli {

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const char* type,
                      const char* help) {
  const auto refuse_nothing = [](const std::string& text) {
    return text.empty() ? std::string("an empty value says nothing") : std::string();
  };
  return command.add_option(name, value, help)
      ->type_name(type)
      ->check(CLI::Validator(refuse_nothing, "", "not_empty"));
}

CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                      const char* type, const char* help) {
  return command.add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

Failure bad_value(std::string_view flag, std::string_view value, std::string_view expected,
                  std::string hint) {
  return fail(ErrorKind::kInvalid, fmt::format("{}: '{}' is not {}", flag, value, expected), std::move(hint));
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<nlohmann::json> parse_whole(const std::string& text, std::string_view flag) {
  const auto number = whole_number(text);
  if (!number) return bad_value(flag, text, "a whole number", fmt::format("write for example {} 4", flag));
  return nlohmann::json(*number);
}

}  // namespace drover::cli
