#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/files.h"
#include "cli/commands/commands.h"

namespace drover::cli {
namespace {

struct BackupOptions {
  std::string file;
  std::string state = ServeOptions().state;
  bool force = false;
};

/// Under its name only when it is whole and on the disk.
Status keep(const UniqueFd& file, const std::string& temporary, const BackupOptions& options) {
  if (::fsync(file.get()) != 0) return fail_errno(fmt::format("Failed to write '{}'", options.file), errno);
  const unsigned flags = options.force ? 0 : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, options.file.c_str(), flags) != 0) {
    if (errno == EEXIST)
      return fail(ErrorKind::kConflict, fmt::format("'{}' is there already", options.file),
                  "choose another name, or replace it with --force");
    return fail_errno(fmt::format("Failed to write '{}'", options.file), errno);
  }
  const auto folder = std::filesystem::path(options.file).parent_path();
  return Directory::open(folder.empty() ? "." : folder.string()).and_then([](const Directory& opened) {
    return opened.sync();
  });
}

Result<int> backup(Context& context, const BackupOptions& options) {
  auto temporary = options.file + ".XXXXXX";
  const UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));  // for its owner alone
  if (!file.valid()) return fail_errno(fmt::format("Failed to create '{}'", options.file), errno);
  Status written;
  auto status = context.client().stream("/v1/backup", "", [&](std::string_view piece) {
    written = write_all(file.get(), piece, options.file);
    return written.has_value();
  });
  if (status) status = written;
  if (status) status = keep(file, temporary, options);
  if (status) return 0;
  ::unlink(temporary.c_str());
  return Failure(status.error());
}

Result<int> restore(Context& context, const BackupOptions& options) {
  DROVER_TRY(const auto before, context.hooks->restore(options.state, options.file, options.force));
  if (!before.empty()) print(fmt::format("The journal that was there is '{}' now\n", before));
  return 0;
}

}  // namespace

void add_backup(CLI::App& app, Context& context) {
  auto saving = std::make_shared<BackupOptions>();
  auto* backup_command =
      app.add_subcommand("backup", "Write a backup of the journal, while the daemon runs; root only");
  backup_command->add_option("file", saving->file, "Where to")->required()->type_name("FILE");
  backup_command->add_flag("--force", saving->force, "Replace a file that is there");
  on_call(backup_command, context, saving, backup);

  auto restoring = std::make_shared<BackupOptions>();
  auto* restore_command =
      app.add_subcommand("restore", "Make a backup the journal again, while no daemon runs; root only");
  restore_command->add_option("file", restoring->file, "What 'drover backup' wrote")
      ->required()
      ->type_name("FILE");
  restore_command->add_option("--state", restoring->state, "Folder of the daemon")
      ->type_name("DIR")
      ->capture_default_str();
  restore_command->add_flag("--force", restoring->force, "Also a backup of another state folder");
  on_call(restore_command, context, restoring, restore);
}

}  // namespace drover::cli
