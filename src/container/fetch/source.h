#pragma once

// What the entries of a task's `fetch` list name: where a file comes from, what it is called in the sandbox,
// and whether it is an archive. Pure; thread safe.

#include <string>
#include <string_view>

#include "base/result.h"
#include "workload/task.h"

namespace drover::container {

struct Source {
  bool local = false;  ///< a file of this machine; else it comes by http or https
  std::string place;   ///< absolute path, or the URI as it was given
  std::string shown;   ///< for people: without user name, password and query
  std::string target;  ///< where in the sandbox: a relative path without "." and ".."
};

/// http, https and file URIs and absolute paths. kInvalid in one sentence that names the URI, also for an
/// `output_file` that leads out of the sandbox or names one of the task's logs.
Result<Source> source_of(const workload::Fetch& fetch);

enum class ArchiveKind {
  kNone,
  kArchive,  ///< tar in its compressions, or zip
  kGzip,     ///< one compressed file
};

/// By the name, as Mesos' fetcher does it: .tar, .tgz, .tar.gz, .tbz2, .tar.bz2, .txz, .tar.xz, .tar.zst,
/// .zip; .gz.
ArchiveKind archive_kind(std::string_view name);

/// The names of a path inside of a folder, without "." and empty ones. kInvalid when it is absolute, has
/// "..", or says nothing.
Result<std::string> inner_path(std::string_view path);

}  // namespace drover::container
