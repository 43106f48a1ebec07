#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <vector>

#include "cli/help.h"
#include "cli/line.h"

namespace drover::cli {
namespace {

/// As roff shows it: no letter has a meaning, and the one that is not ASCII in our words has a name.
std::string plain(std::string_view text) {
  constexpr std::string_view kEllipsis = "…";
  std::string shown;
  bool begins_line = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(kEllipsis)) {
      shown += "\\[u2026]";
      i += kEllipsis.size() - 1;
      continue;
    }
    const char c = text[i];
    if (begins_line && (c == '.' || c == '\'')) shown += "\\&";
    if (c == '\\')
      shown += "\\e";
    else if (c == '-')
      shown += "\\-";
    else
      shown += c;
    begins_line = c == '\n';
  }
  return shown;
}

std::string page_name(const CLI::App& command) {
  auto name = full_name(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

bool is_shown(const CLI::App* command) {
  return !command->get_group().empty();
}

std::string option_entry(const CLI::Option& option) {
  const bool is_argument = option.get_positional();
  auto head = is_argument ? "\\fI" + plain(option.get_type_name()) + "\\fR"
                          : "\\fB" + plain(option.get_name(false, true)) + "\\fR";
  if (!is_argument && takes_value(option)) head += " \\fI" + plain(option.get_type_name()) + "\\fR";
  auto text = plain(option.get_description());
  if (const auto usual = option.get_default_str(); !usual.empty() && !is_argument)
    text += fmt::format("\n.br\nWhen it is not given: {}", plain(usual));
  return fmt::format(".TP\n{}\n{}\n", head, text);
}

/// Those of one group, or the arguments.
std::string entries_of(const CLI::App& command, const std::function<bool(const CLI::Option*)>& belongs) {
  std::string text;
  for (const auto* option : command.get_options(belongs)) text += option_entry(*option);
  return text;
}

std::string option_entries(const CLI::App& command) {
  std::string text = entries_of(command, [](const auto* option) { return option->get_positional(); });
  for (const auto& group : command.get_groups()) {
    const auto in_group = entries_of(command, [&](const auto* option) {
      return option->nonpositional() && option->get_group() == group && !group.empty();
    });
    if (in_group.empty()) continue;
    if (group != "Options" && group != "OPTIONS") text += fmt::format(".SS {}\n", plain(group));
    text += in_group;
  }
  return text;
}

std::string command_entries(const CLI::App& command) {
  std::string text;
  for (const auto* child : command.get_subcommands(is_shown))
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", plain(page_name(*child)), plain(child->get_description()));
  return text;
}

/// What stands below the options: words, and examples as they are typed.
std::string footer_of(const CLI::App& command) {
  const auto footer = command.get_footer();
  const auto at = std::min(footer.find("Example"), footer.size());
  std::string text;
  if (const auto words = footer.substr(0, at); !words.empty())
    text += fmt::format(".SH NOTES\n{}\n", plain(words));
  if (at < footer.size())
    text += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n",
                        plain(footer.substr(std::min(footer.find('\n', at), footer.size() - 1) + 1)));
  return text;
}

std::string page_of(const CLI::App& command, const std::string& version) {
  auto name = page_name(command);
  auto title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  auto text = fmt::format(
      ".TH {} 1 \"\" \"Drover {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n\\fB{}\\fR\n",
      plain(title), plain(version), plain(name), plain(command.get_description()), plain(usage_of(command)));
  if (const auto commands = command_entries(command); !commands.empty()) text += ".SH COMMANDS\n" + commands;
  if (const auto options = option_entries(command); !options.empty()) text += ".SH OPTIONS\n" + options;
  text += footer_of(command);
  return text +
         ".SH SEE ALSO\n.BR drover (1),\nwhich has the options that all commands take, and what their exit "
         "statuses mean\n";
}

void add_pages(const CLI::App& command, const std::string& version,
               std::map<std::string, std::string>& pages) {
  for (const auto* child : command.get_subcommands(is_shown)) {
    pages.emplace(page_name(*child) + ".1", page_of(*child, version));
    add_pages(*child, version, pages);
  }
}

}  // namespace

std::map<std::string, std::string> man_pages(const CLI::App& program, const std::string& version) {
  std::map<std::string, std::string> pages;
  add_pages(program, version, pages);
  return pages;
}

}  // namespace drover::cli
