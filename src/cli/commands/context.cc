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
  NamedContext cluster = {.name_space = "drover", .service = "drover-control-plane"};
  bool use = false;
};

/// Of a file of this machine, wherever a later command stands.
std::string full_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

Result<int> list(Context&, const TableOptions& options) {
  DROVER_TRY(const auto contexts, read_contexts());
  if (options.json) {
    json all = json::array();
    for (const auto& [name, context] : contexts.all)
      all.push_back({{"name", name}, {"used", name == contexts.used}, {"daemon", whereabouts_of(context)}});
    print_json({{"contexts", std::move(all)}});
    return 0;
  }
  Table table({"USED", "NAME", "DAEMON"});
  for (const auto& [name, context] : contexts.all)
    table.add({name == contexts.used ? "*" : "", name, printable(whereabouts_of(context))});
  DROVER_TRY(const auto text, shown(table, options));
  print(text);
  return 0;
}

Result<NamedContext> of_cluster(const Context& context, const AddOptions& options) {
  if (context.app->count("--host") + context.app->count("--socket") > 0)
    return fail(ErrorKind::kInvalid, "The daemon is either in a cluster, or where --host or --socket says",
                "leave one of the two out");
  auto named = options.cluster;
  named.kubeconfig = full_path(named.kubeconfig);
  if (named.service.find(':') == std::string::npos) named.service += ":http";
  named.token = context.token_said;
  DROVER_CHECK_OK(check_service(named));
  if (named.token.empty())
    return fail(
        ErrorKind::kUnauthenticated, "The daemon in the cluster lets nobody in without a secret",
        "put yours into DROVER_TOKEN, or --token: it stands behind your name in the daemon's credentials");
  DROVER_CHECK_OK(find_gateway(*context.hooks, named));
  return named;
}

/// What the options of every command say of a daemon.
Result<NamedContext> of_endpoint(const Context& context, const AddOptions& options) {
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
  return named;
}

Result<int> add(Context& context, const AddOptions& options) {
  DROVER_CHECK_OK(check_context_name(options.name));
  DROVER_TRY(const auto named, options.cluster.kubeconfig.empty() ? of_endpoint(context, options)
                                                                  : of_cluster(context, options));
  DROVER_TRY(auto contexts, read_contexts());
  const bool is_new = contexts.all.insert_or_assign(options.name, named).second;
  if (options.use) contexts.used = options.name;
  DROVER_CHECK_OK(write_contexts(contexts));
  print(fmt::format("{}: {}, {}\n", options.name, is_new ? "new" : "changed",
                    printable(whereabouts_of(named))));
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
  print(options.name == kNoContext
            ? "commands speak to the daemon of this machine now\n"
            : fmt::format("commands speak to {} now\n", printable(whereabouts_of(named))));
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
  auto* added =
      group->add_subcommand("add", "Give a name to the daemon that --host, --socket or --kubeconfig says");
  added->add_option("name", adding->name, "The name")->required()->type_name("NAME");
  added->add_flag("--use", adding->use, "Use it from now on");
  added
      ->add_option("--kubeconfig", adding->cluster.kubeconfig,
                   "It runs in a cluster, and is reached through the API server that this file says")
      ->type_name("FILE");
  added
      ->add_option("--kube-context", adding->cluster.kube_context,
                   "Which context of that file; the current one when not given")
      ->type_name("NAME");
  added->add_option("--namespace", adding->cluster.name_space, "Where in the cluster it runs")
      ->type_name("NAME")
      ->capture_default_str();
  added->add_option("--service", adding->cluster.service, "Its Service there, and the port's name or number")
      ->type_name("NAME[:PORT]")
      ->capture_default_str();
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
