#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

using nlohmann::json;

std::string_view name_of(Check::State state) {
  switch (state) {
    case Check::State::kFound:
      return "found";
    case Check::State::kWarning:
      return "warning";
    case Check::State::kMissing:
      return "missing";
  }
  return "";
}

std::string_view colour_of(Check::State state) {
  switch (state) {
    case Check::State::kFound:
      return "\033[32m";
    case Check::State::kWarning:
      return "\033[33m";
    case Check::State::kMissing:
      return "\033[31m";
  }
  return "";
}

/// The one thing that only the API can tell.
Check check_daemon(const Context& context) {
  const auto& where = context.endpoint.url.empty() ? context.endpoint.socket : context.endpoint.url;
  const auto version = context.client().get("/v1/version");
  if (!version) return {"daemon", Check::State::kMissing, version.error().message, version.error().hint};
  const auto theirs = version->value("version", "");
  const auto found = fmt::format("version {} serves on '{}'", theirs, where);
  if (theirs == context.hooks->version) return {"daemon", Check::State::kFound, found, ""};
  return {"daemon", Check::State::kWarning, found,
          fmt::format("this program is version {}: restart the daemon", context.hooks->version)};
}

std::vector<Check> what_ails_the_daemon(const Context& context) {
  std::vector<Check> checks;
  const auto health = context.client().get("/health");
  if (!health) return checks;
  for (const auto& problem : health->value("problems", json::array()))
    checks.push_back(
        {"daemon", Check::State::kWarning, problem.value("message", ""), problem.value("hint", "")});
  return checks;
}

void print_check(const Check& check, std::size_t name_width, bool coloured) {
  const auto state = fmt::format("{:<7}", name_of(check.state));
  const auto painted = coloured ? fmt::format("{}{}\033[0m", colour_of(check.state), state) : state;
  print(fmt::format("{}  {:<{}}  {}\n", painted, check.name, name_width, printable(check.found)));
  if (!check.mend.empty())
    print(fmt::format("{:<{}}  → {}\n", "", state.size() + 2 + name_width, printable(check.mend)));
}

Result<int> doctor(Context& context, const ShowOptions& options) {
  auto checks = context.hooks->doctor();
  checks.push_back(check_daemon(context));
  for (auto& check : what_ails_the_daemon(context)) checks.push_back(std::move(check));
  const bool well = std::none_of(checks.begin(), checks.end(),
                                 [](const Check& check) { return check.state == Check::State::kMissing; });
  if (options.json) {
    json list = json::array();
    for (const auto& check : checks)
      list.push_back({{"name", check.name},
                      {"state", name_of(check.state)},
                      {"found", check.found},
                      {"mend", check.mend}});
    print_json({{"well", well}, {"checks", std::move(list)}});
    return well ? 0 : 1;
  }
  std::size_t width = 0;
  for (const auto& check : checks) width = std::max(width, check.name.size());
  for (const auto& check : checks) print_check(check, width, colours(STDOUT_FILENO));
  return well ? 0 : 1;
}

Result<int> version(Context& context, const ShowOptions& options) {
  if (options.json)
    print_json({{"version", context.hooks->version}});
  else
    print("drover " + context.hooks->version + "\n");
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto doctor_options = std::make_shared<ShowOptions>();
  auto* doctor_command =
      app.add_subcommand("doctor", "Check what Drover needs: found, missing, how to mend it");
  doctor_command->add_flag("--json", doctor_options->json, "Print JSON");
  on_call(doctor_command, context, doctor_options, doctor);

  auto version_options = std::make_shared<ShowOptions>();
  auto* version_command = app.add_subcommand("version", "Print the version of this program");
  version_command->add_flag("--json", version_options->json, "Print JSON");
  on_call(version_command, context, version_options, version);
}

}  // namespace drover::cli
