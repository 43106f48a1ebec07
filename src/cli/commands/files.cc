#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/sandbox_archive.h"
#include "cli/table.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr const char* kStandardOutput = "-";

struct FilesOptions {
  std::string task;
  std::string path;
  std::string output;
  bool json = false;
};

std::string file_target(const FilesOptions& options, std::string_view what) {
  return task_target(options.task, fmt::format("/files/{}?path={}", what, percent_encode(options.path)));
}

/// What the API calls browsing and reading are commands here.
Error in_commands(Error error) {
  if (error.hint == "browse it instead") error.hint = "it is a folder: 'drover files ls' lists it";
  if (error.hint == "read it instead") error.hint = "it is a file: 'drover files cat' prints it";
  return error;
}

Result<int> list_files(Context& context, const FilesOptions& options) {
  const auto answer = context.client().get(file_target(options, "browse"));
  if (!answer) return Failure(in_commands(answer.error()));
  const auto& listing = *answer;
  if (options.json) {
    print_json(listing);
    return 0;
  }
  Table table({"MODE", "SIZE", "MODIFIED", "NAME"});
  for (const auto& file : listing.value("files", json::array()))
    table.add({file.value("mode", ""), format_bytes(file.value("size", std::uint64_t{0})),
               file.value("modified_at", ""),
               file.value("name", "") + (file.value("kind", "") == "directory" ? "/" : "")});
  print(shown(table));
  return 0;
}

Status download(const Client& client, const FilesOptions& options, int fd, const std::string& name) {
  Status written;
  const auto streamed = client.stream(file_target(options, "download"), "", [&](std::string_view piece) {
    written = write_all(fd, piece, name);
    return written.has_value();
  });
  if (!streamed) return Failure(in_commands(streamed.error()));
  return written;
}

Result<int> print_file(Context& context, const FilesOptions& options) {
  DROVER_CHECK_OK(download(context.client(), options, STDOUT_FILENO, "standard output"));
  return 0;
}

/// "c" of "a/b/c/"; "sandbox" of the sandbox itself.
std::string own_name(const std::string& path) {
  const auto last = path.find_last_not_of('/');
  const auto name = last == std::string::npos ? "" : path.substr(0, last + 1);
  const auto own = name.substr(name.rfind('/') + 1);
  return own.empty() || own == "." ? "sandbox" : own;
}

Result<bool> is_folder(const Client& client, const FilesOptions& options) {
  const auto listing = client.get(file_target(options, "browse"));
  if (listing) return true;
  if (listing.error().kind == ErrorKind::kInvalid) return false;
  return Failure(listing.error());
}

Status download_folder(const Client& client, const FilesOptions& options, int fd, const std::string& name) {
  const auto write = [&](std::string_view piece) { return write_all(fd, piece, name); };
  DROVER_TRY(const auto left_out,
             write_archive(client, {options.task, options.path, own_name(options.path)}, write));
  if (!left_out.empty())
    report(fmt::format("Not in the archive, since only files and folders are: '{}'{}", left_out.front(),
                       left_out.size() == 1 ? "" : fmt::format(" and {} more", left_out.size() - 1)));
  return {};
}

/// What could not be fetched whole is not left behind, and what is there is not overwritten.
Result<int> get_file(Context& context, const FilesOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const bool folder, is_folder(client, options));
  const auto fetch = folder ? download_folder : download;
  if (options.output == kStandardOutput) {
    if (folder && ::isatty(STDOUT_FILENO) == 1)
      return fail(ErrorKind::kInvalid,
                  fmt::format("'{}' is a folder, and a terminal cannot show a tar", options.path),
                  "write it to a file with --output, or into a pipe: … -o - | tar x");
    DROVER_CHECK_OK(fetch(client, options, STDOUT_FILENO, "standard output"));
    return 0;
  }
  auto output = options.output;
  if (output.empty()) output = own_name(options.path) + (folder ? ".tar" : "");
  const UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) return fail_errno(fmt::format("Failed to create '{}'", output), errno);
  const auto status = fetch(client, options, file.get(), output);
  if (status) return 0;
  ::unlink(output.c_str());
  return Failure(status.error());
}

CLI::App* add_for_path(CLI::App* parent, Context& context, const std::string& name, const std::string& help,
                       const std::shared_ptr<FilesOptions>& options,
                       Result<int> (*body)(Context&, const FilesOptions&), bool required) {
  auto* command = parent->add_subcommand(name, help);
  command->add_option("task", options->task, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK");
  command->add_option("path", options->path, "Path inside the sandbox")
      ->required(required)
      ->type_name("PATH");
  on_call(command, context, options, body);
  return command;
}

}  // namespace

void add_files(CLI::App& app, Context& context) {
  auto* files = app.add_subcommand("files", "Look into a task's sandbox");
  files->require_subcommand(1);
  auto listing = std::make_shared<FilesOptions>();
  add_for_path(files, context, "ls", "List a folder", listing, list_files, false)
      ->add_flag("--json", listing->json, "Print JSON");
  add_for_path(files, context, "cat", "Print a file", std::make_shared<FilesOptions>(), print_file, true);
  auto getting = std::make_shared<FilesOptions>();
  add_for_path(files, context, "get", "Copy a file to this machine, or a folder as a tar", getting, get_file,
               true)
      ->add_option("--output,-o", getting->output,
                   "Where to, '-' for standard output; its own name here when not given")
      ->type_name("FILE");
}

}  // namespace drover::cli
