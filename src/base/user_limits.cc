#include "base/user_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/units.h"

namespace drover {
namespace {

constexpr std::array kUserLimits = {
    UserLimit{"waiting-tasks", &UserLimits::waiting_tasks, false, "tasks of one user that wait"},
    UserLimit{"definition-size", &UserLimits::definition_bytes, true, "the definition of one task"},
    UserLimit{"stored-size", &UserLimits::stored_bytes, true, "all definitions that one user has"},
    UserLimit{"frameworks", &UserLimits::frameworks, false, "frameworks of one user"},
    UserLimit{"slow-launches", &UserLimits::slow_launches, false,
              "tasks of one user at once that fetch files or pull their image"},
    UserLimit{"pulls", &UserLimits::pulls, false, "images that one user pulls or loads at once"},
    UserLimit{"command-checks", &UserLimits::command_checks, false,
              "health checks by command of one user at once"},
    UserLimit{"answer-size", &UserLimits::answer_bytes, true,
              "answers to one user that are not read yet, and a second"},
    UserLimit{"sandbox-size", &UserLimits::sandbox_bytes, true,
              "what all tasks of one user keep on the disk"},
    UserLimit{"processes", &UserLimits::processes, false, "processes of a task that does not say"},
    UserLimit{"all-tasks", &UserLimits::all_tasks, false, "tasks of all users that wait or run"},
    UserLimit{"all-ended-tasks", &UserLimits::all_ended_tasks, false,
              "tasks of all users that have ended and are remembered"},
    UserLimit{"all-definitions", &UserLimits::all_definitions, false, "apps, groups and jobs of all users"},
    UserLimit{"all-stored-size", &UserLimits::all_stored_bytes, true, "all definitions of all users"},
    UserLimit{"all-frameworks", &UserLimits::all_frameworks, false, "frameworks of all users"},
};

const UserLimit* limit_of(std::string_view name) {
  const auto found = std::ranges::find(kUserLimits, name, &UserLimit::name);
  return found == kUserLimits.end() ? nullptr : &*found;
}

Result<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a number", text));
}

}  // namespace

std::span<const UserLimit> user_limits() {
  return kUserLimits;
}

Status set_limit(UserLimits& limits, std::string_view setting) {
  const auto equals = std::min(setting.find('='), setting.size());
  const auto name = setting.substr(0, equals);
  const auto* limit = limit_of(name);
  if (limit == nullptr) {
    std::string names;
    for (const auto& one : kUserLimits) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    return fail(ErrorKind::kInvalid, fmt::format("There is no limit '{}'", name), "there are: " + names);
  }
  const auto text = setting.substr(std::min(equals + 1, setting.size()));
  auto value = limit->bytes ? parse_bytes(text) : parse_number(text);
  if (!value) return Failure(context(value.error(), name));
  if (*value == 0) return fail(ErrorKind::kInvalid, fmt::format("The limit '{}' is at least 1", name));
  limits.*limit->value = *value;
  return {};
}

std::string show(const UserLimit& limit, const UserLimits& limits) {
  const auto value = limits.*limit.value;
  if (value == 0) return "half of the disk";
  return limit.bytes ? format_bytes(value) : std::to_string(value);
}

std::string allow_more(std::uint64_t UserLimits::* value) {
  const auto limit = std::ranges::find(kUserLimits, value, &UserLimit::value);
  return fmt::format("the administrator can allow more: drover serve --limit {}=N", limit->name);
}

}  // namespace drover
