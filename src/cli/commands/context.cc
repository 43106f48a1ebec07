// Names for daemons: which one commands speak to.

#include "cli/context.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/contexts.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct NameOptions {
  std::string name;
};

struct AddOptions {
  std::string name;
  bool use = false;
};

/// Of a file of this machine, wherever a later command stands.
std::string full_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string where(const NamedContext& context) {
  return context.host.empty() ? context.socket : context.host;
}

Result<int> list(Context&, const TableOptions& options) {
  DROVER_TRY(const auto contexts, read_contexts());
  if (options.json) {
    json all = json::array();
    for (const auto& [name, context] : contexts.all)
      all.push_back({{"name", name}, {"used", name == contexts.used}, {"daemon", where(context)}});
    print_json({{"contexts", std::move(all)}});
    return 0;
  }
  Table table({"USED", "NAME", "DAEMON"});
  for (const auto& [name, context] : contexts.all)
    table.add({name == contexts.used ? "*" : "", name, printable(where(context))});
  DROVER_TRY(const auto text, shown(table, options));
  print(text);
  return 0;
}

/// What the options of every command say of a daemon gets a name.
Result<int> add(Context& context, const AddOptions& options) {
  DROVER_CHECK_OK(check_context_name(options.name));
  const auto& endpoint = context.endpoint;
  if (!context.endpoint_said)
    return fail(ErrorKind::kInvalid, "It is not said which daemon gets that name",
                fmt::format("write for example: drover context add {} --host https://gpus.example.com",
                            options.name));
  DROVER_CHECK_OK(check(endpoint));
  NamedContext named;
  if (endpoint.url.empty()) {
    named.socket = full_path(endpoint.socket);
  } else {
    named.host = endpoint.url;
    named.token = endpoint.token;
    if (!endpoint.ca_file.empty()) named.ca_file = full_path(endpoint.ca_file);
  }
  DROVER_TRY(auto contexts, read_contexts());
  const bool is_new = contexts.all.insert_or_assign(options.name, named).second;
  if (options.use) contexts.used = options.name;
  DROVER_CHECK_OK(write_contexts(contexts));
  print(fmt::format("{}: {}, {}\n", options.name, is_new ? "new" : "changed", printable(where(named))));
  return 0;
}

Result<int> use(Context&, const NameOptions& options) {
  DROVER_TRY(auto contexts, read_contexts());
  NamedContext named;
  if (options.name != kNoContext) {
    DROVER_TRY(named, contexts.find(options.name));
  }
  contexts.used = options.name == kNoContext ? "" : options.name;
  DROVER_CHECK_OK(write_contexts(contexts));
  print(options.name == kNoContext ? "commands speak to the daemon of this machine now\n"
                                   : fmt::format("commands speak to {} now\n", printable(where(named))));
  return 0;
}

Result<int> remove(Context&, const NameOptions& options) {
  DROVER_TRY(auto contexts, read_contexts());
  DROVER_CHECK_OK(contexts.find(options.name));
  contexts.all.erase(options.name);
  if (contexts.used == options.name) contexts.used.clear();
  DROVER_CHECK_OK(write_contexts(contexts));
  print(fmt::format("{}: removed\n", options.name));
  return 0;
}

}  // namespace

void add_contexts(CLI::App& app, Context& context) {
  auto* group = app.add_subcommand("context", "Give names to daemons, and say which one commands speak to");
  group->require_subcommand(1);
  auto listing = std::make_shared<TableOptions>();
  auto* listed = group->add_subcommand("ls", "List the names");
  add_list_flags(*listed, *listing);
  on_call(listed, context, listing, list);
  auto adding = std::make_shared<AddOptions>();
  auto* added = group->add_subcommand("add", "Give a name to the daemon that --host, or --socket, says");
  added->add_option("name", adding->name, "The name")->required()->type_name("NAME");
  added->add_flag("--use", adding->use, "Use it from now on");
  on_call(added, context, adding, add);
  auto using_one = std::make_shared<NameOptions>();
  auto* used =
      group->add_subcommand("use", "Speak to that daemon from now on; 'none': to that of this machine");
  used->add_option("name", using_one->name, "The name")->required()->type_name("NAME");
  on_call(used, context, using_one, use);
  auto removing = std::make_shared<NameOptions>();
  auto* removed = group->add_subcommand("rm", "Forget a name");
  removed->add_option("name", removing->name, "The name")->required()->type_name("NAME");
  on_call(removed, context, removing, remove);
}

}  // namespace drover::cli
