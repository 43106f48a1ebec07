#include "cli/help.h"

#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/line.h"

namespace drover::cli {
namespace {

constexpr const char* kGlobalOptions = "Which daemon";

/// The program's commands in the order of its help.
struct Chapter {
  const char* title;
  std::vector<std::string_view> commands;
};

const std::vector<Chapter>& chapters() {
  static const std::vector<Chapter> all = {
      {"Tasks",
       {"run", "submit", "plan", "attach", "ps", "show", "explain", "logs", "stats", "exec", "forward",
        "resize", "stop", "rm", "inspect", "files", "events"}},
      {"Apps and jobs", {"init", "validate", "apply", "export", "app", "job"}},
      {"Sharing", {"queue", "quota", "report"}},
      {"Images", {"image"}},
      {"This machine", {"ui", "top", "gpus", "topo", "node", "cordon", "uncordon", "drain", "cdi", "doctor"}},
      {"The daemon", {"serve", "backup", "restore", "kube"}},
      {"This program", {"help", "context", "completion", "version"}},
  };
  return all;
}

struct Footer {
  std::string_view path;
  const char* text;
};

constexpr std::array kFooters = {
    Footer{"",
           "Examples:\n"
           "    drover run --gpus 2 python3 train.py\n"
           "    drover ps\n"
           "    drover logs --follow TASK\n"
           "'drover COMMAND --help' has the rest."},
    Footer{"run",
           "Drover's own flags stand before the command; all behind its first word is the command's.\n\n"
           "Examples:\n"
           "  drover run --gpus 1 nvidia-smi -L\n"
           "  drover run --gpus 2 --mem 32GiB --name train --detach python3 train.py\n"
           "  drover run --gpus 1 -it bash\n"
           "  drover run --image ubuntu:24.04 -v ./data:/data:ro bash -c 'ls /data'\n"
           "  drover run --gang 4 --gpus 2 --interconnect nvlink python3 train.py"},
    Footer{"plan",
           "Exits with 0 when it would start now, and with 1 when it would wait\n\n"
           "Examples:\n"
           "  drover plan --gpus 8 --interconnect nvlink"},
    Footer{"ps",
           "Examples:\n"
           "  drover ps --all\n"
           "  drover ps --state failed --since 1d\n"
           "  drover ps -q --name 'sweep-*' | xargs drover stop"},
    Footer{"explain", "Example:\n  drover explain train"},
    Footer{"logs",
           "Examples:\n"
           "  drover logs train\n"
           "  drover logs --follow --tail 20 train\n"
           "  drover logs --timestamps --since 10m train"},
    Footer{"stats",
           "Without a task it lists all of yours that run.\n\n"
           "Examples:\n"
           "  drover stats\n"
           "  drover stats --follow train\n"
           "  drover stats --resolution 60 --since 6h train"},
    Footer{"events",
           "Examples:\n"
           "  drover events --task train\n"
           "  drover events --since 2h --kind task_failed --kind task_lost\n"
           "  drover events --follow"},
    Footer{"exec",
           "All behind the first word of the command is the command's own.\n\n"
           "Examples:\n"
           "  drover exec -it train bash\n"
           "  drover exec train nvidia-smi -L"},
    Footer{"resize",
           "The GPUs stay those that it has. What holds it to its share stays the same too.\n\n"
           "Examples:\n"
           "  drover resize train --gpu-share 12GiB\n"
           "  drover resize train --gpu-share 0.25"},
    Footer{"stop",
           "Examples:\n"
           "  drover stop train\n"
           "  drover stop --force 4f2a 77b0"},
    Footer{"files",
           "Examples:\n"
           "  drover files ls train\n"
           "  drover files get train model.pt --output best.pt"},
    Footer{"init",
           "Examples:\n"
           "  drover init task\n"
           "  drover init app web.yaml"},
    Footer{"validate", "Example:\n  drover validate --strict app.yaml"},
    Footer{"context",
           "Examples:\n"
           "  DROVER_TOKEN=secret drover context add lab --host https://gpus.example.com --use\n"
           "  drover ps\n"
           "  drover --context none ps\n"
           "  drover context use none"},
    Footer{"export",
           "Examples:\n"
           "  drover export > everything.yaml\n"
           "  drover --context lab apply everything.yaml"},
    Footer{"apply",
           "Examples:\n"
           "  drover apply --dry-run app.yaml\n"
           "  drover apply app.yaml jobs.json"},
    Footer{"app",
           "Examples:\n"
           "  drover app ls\n"
           "  drover app scale /shop/web 3"},
    Footer{"job",
           "Examples:\n"
           "  drover job ls\n"
           "  drover job run nightly"},
    Footer{"queue",
           "Examples:\n"
           "  drover queue\n"
           "  sudo drover queue set research/vision --gpus-guarantee 4 --users alice,bob"},
    Footer{"quota", "Example:\n  sudo drover quota set user:alice --gpus 2 --mem 64GiB"},
    Footer{"report",
           "Examples:\n"
           "  drover report --since 30d --by queue\n"
           "  drover report --since 2026-11-01 --until 2026-12-01 --csv > november.csv"},
    Footer{"image",
           "Examples:\n"
           "  drover image pull redis:7\n"
           "  drover image load docker-archive:tool.tar team/tool:1.0"},
    Footer{"serve",
           "Examples:\n"
           "  sudo drover serve\n"
           "  sudo drover serve --simulate dgx-a100"},
};

std::vector<const CLI::Option*> arguments_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string argument_usage(const CLI::Option& argument) {
  const bool many = argument.get_items_expected_max() > 1 || argument.get_type_name() == kCommandType;
  const auto text = argument.get_type_name() + (many ? "..." : "");
  return argument.get_required() ? text : "[" + text + "]";
}

class DroverFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    return "Usage: " + usage_of(*app) + "\n";
  }

  std::string make_positionals(const CLI::App* app) const override {
    const auto all = arguments_of(*app);
    return all.empty() ? "" : make_group("Arguments", true, all);
  }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional ? option->get_type_name() : CLI::Formatter::make_option_name(option, false);
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional()) return "";
    auto text = takes_value(*option) ? " " + option->get_type_name() : "";
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    return option->get_required() ? text + " (needed)" : text;
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    if (app->get_parent() != nullptr || mode == CLI::AppFormatMode::All)
      return CLI::Formatter::make_subcommands(app, mode);
    auto rest = app->get_subcommands([](const CLI::App* child) { return !child->get_group().empty(); });
    std::string text;
    for (const auto& chapter : chapters()) {
      text += fmt::format("\n{}:\n", chapter.title);
      for (const auto name : chapter.commands)
        if (const auto at = std::ranges::find(rest, name, &CLI::App::get_name); at != rest.end()) {
          text += make_subcommand(*at);
          rest.erase(at);
        }
    }
    if (!rest.empty()) text += "\nOthers:\n";
    for (const auto* command : rest) text += make_subcommand(command);
    return text;
  }

  /// Every command takes the program's options too.
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    const auto* program = app;
    while (program->get_parent() != nullptr) program = program->get_parent();
    const auto global =
        program->get_options([](const CLI::Option* option) { return option->get_group() == kGlobalOptions; });
    if (app != program && !global.empty()) text = make_group(kGlobalOptions, false, global).substr(1) + "\n";
    return text + CLI::Formatter::make_footer(app);
  }
};

void set_formatter(CLI::App& app, const std::shared_ptr<DroverFormatter>& formatter) {
  app.formatter(formatter);
  for (auto* child : app.get_subcommands([](CLI::App*) { return true; })) set_formatter(*child, formatter);
}

}  // namespace

void set_help(CLI::App& program) {
  set_formatter(program, std::make_shared<DroverFormatter>());
  for (auto* option : program.get_options())
    if (!option->get_lnames().empty() && takes_value(*option)) option->group(kGlobalOptions);
  for (const auto& [path, text] : kFooters)
    (path.empty() ? &program : program.get_subcommand(std::string(path)))->footer(text);
}

std::string usage_of(const CLI::App& command) {
  auto text = full_name(command) + " [OPTIONS]";
  for (const auto* argument : arguments_of(command)) text += " " + argument_usage(*argument);
  const auto children =
      command.get_subcommands([](const CLI::App* child) { return !child->get_group().empty(); });
  if (!children.empty()) text += command.get_require_subcommand_min() == 0 ? " [COMMAND]" : " COMMAND";
  return text;
}

std::string help_of(const CLI::App& command) {
  return command.get_formatter()->make_help(&command, full_name(command), CLI::AppFormatMode::Normal);
}

}  // namespace drover::cli
