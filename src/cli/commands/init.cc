// A definition to start from. Needs no daemon.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/definitions/examples.h"

namespace drover::cli {
namespace {

struct InitOptions {
  std::string kind;
  std::string file;
};

/// Where the schema is installed beside the program; "" when it is not.
std::string installed_schema(std::string_view name) {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) return "";
  const auto path =
      program.parent_path().parent_path() / "share/drover/schemas" / fmt::format("{}.json", name);
  return std::filesystem::is_regular_file(path, unknown) ? path.string() : "";
}

std::string text_of(const ExampleFile& example) {
  const auto schema = installed_schema(example.schema);
  const auto head = schema.empty() ? "" : fmt::format("# yaml-language-server: $schema={}\n", schema);
  return head + std::string(example.text);
}

/// Makes the file, which must not be there.
Status write_new(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  const int trouble = errno;
  if (!file.valid() && trouble == EEXIST)
    return fail(ErrorKind::kConflict, fmt::format("'{}' is there already", path),
                "name another file; '-' is standard output");
  if (!file.valid()) return fail_errno(fmt::format("Failed to make '{}'", path), trouble);
  return write_all(file.get(), text, path);
}

Result<int> init(Context&, const InitOptions& options) {
  const auto example = std::ranges::find(kExampleFiles, options.kind, &ExampleFile::kind);
  if (example == kExampleFiles.end())
    return fail(ErrorKind::kInvalid, fmt::format("There is no example of a '{}'", options.kind),
                "it is one of app, job, task, gang");
  const auto text = text_of(*example);
  const auto file = options.file.empty() ? fmt::format("{}.yaml", options.kind) : options.file;
  if (file == "-") {
    print(text);
    return 0;
  }
  DROVER_CHECK_OK(write_new(file, text));
  print(fmt::format("{} is written: 'drover apply {}' runs it\n", file, file));
  return 0;
}

}  // namespace

void add_init(CLI::App& app, Context& context) {
  auto options = std::make_shared<InitOptions>();
  auto* command = app.add_subcommand("init", "Write a small definition to start from into a new file");
  command->add_option("kind", options->kind, "Of what")->required()->type_name("app|job|task|gang");
  command
      ->add_option("file", options->file,
                   "Where to; app.yaml, job.yaml … when not given; '-' is standard output")
      ->type_name("FILE");
  on_call(command, context, options, init);
}

}  // namespace drover::cli
