#pragma once

// What every command needs: where the daemon is, and how to speak to people. A command is a function that
// returns the exit status of the process or an Error; errors are told in one place.

#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"

namespace drover::cli {

struct Context {
  const Hooks* hooks = nullptr;
  const CLI::App* app = nullptr;  ///< the whole tree: completion is generated from it
  Endpoint endpoint;
  bool endpoint_said = false;        ///< by the line or the environment, not by a context (contexts.h)
  std::string token_said;            ///< the same of the secret
  std::vector<std::string> command;  ///< what is to run: behind "--", or from its first word on
  int exit_status = 0;

  Client client() const { return Client(endpoint); }
};

/// Makes `body` what `command` does.
template <typename Options>
void on_call(CLI::App* command, Context& context, std::shared_ptr<Options> options,
             Result<int> (*body)(Context&, const Options&));

/// Whether report_error() writes a line of JSON from now on: {"error": {"kind": …, "message": …, "hint": …,
/// "path": …}}. Before there are threads.
void report_errors_as_json(bool wanted);

/// "drover: message", and the hint on a line of its own, to standard error.
void report_error(const Error& error);
/// "drover: text" to standard error.
void report(std::string_view text);
void print(std::string_view text);
/// Columns of standard output's terminal; 0 when it has none.
std::size_t columns();
/// The table as standard output has it: on a terminal it fits there, and has colours.
std::string shown(const Table& table, bool header = true);

/// How somebody wants a list.
struct TableOptions {
  bool json = false;
  bool no_header = false;
  std::string format;  ///< list_format.h; "": as it comes
};
void add_list_flags(CLI::App& command, TableOptions& options);
/// The table in that form, if it is not JSON; kInvalid for a format that is wrong.
Result<std::string> shown(const Table& table, const TableOptions& options);
void print_json(const nlohmann::json& value);

/// Whether to use colours on this descriptor: a terminal, and no NO_COLOR.
bool colours(int fd);

void finish(Context& context, const Result<int>& result);

template <typename Options>
void on_call(CLI::App* command, Context& context, std::shared_ptr<Options> options,
             Result<int> (*body)(Context&, const Options&)) {
  command->callback([&context, options, body] { finish(context, body(context, *options)); });
}

/// A target below one task: task_target("x", "/stop").
std::string task_target(const std::string& id, const std::string& rest = "");

}  // namespace drover::cli
