// `drover forward`: ports of a task, where its owner is.

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/port_forward.h"

namespace drover::cli {
namespace {

struct ForwardOptions {
  std::string task;
  std::vector<std::string> ports;
};

Result<int> forward(Context& context, const ForwardOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto record, client.get(task_target(options.task)));
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<PortForward> forwards;
  for (const auto& text : options.ports) {
    DROVER_TRY(const auto pair, parse_port_pair(text));
    DROVER_TRY(auto opened, PortForward::open(client, record.at("task").value("id", ""), pair));
    const auto there = opened.probe();
    if (!there && there.error().kind != ErrorKind::kUnavailable) return Failure(there.error());
    print(fmt::format("127.0.0.1:{} leads to port {} of '{}'{}\n", opened.here(), pair.there, options.task,
                      there ? "" : ", where nobody listens yet"));
    forwards.push_back(std::move(opened));
  }
  for (std::size_t i = 1; i < forwards.size(); ++i)
    std::thread([&forwarded = forwards[i]] { (void)forwarded.serve(); }).detach();
  DROVER_CHECK_OK(forwards.front().serve());
  return 0;
}

}  // namespace

void add_forward(CLI::App& app, Context& context) {
  auto options = std::make_shared<ForwardOptions>();
  auto* command = app.add_subcommand("forward", "Make ports here lead to ports of a task that runs");
  command->add_option("task", options->task, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK");
  command->add_option("port", options->ports, "8888, or 9000:8888 for port 9000 here; 0: any that is free")
      ->required()
      ->expected(1, 16)
      ->type_name("[PORT:]PORT");
  command->footer("It ends with Ctrl-C. The task must have been given the port: drover run --publish 8888");
  on_call(command, context, options, forward);
}

}  // namespace drover::cli
