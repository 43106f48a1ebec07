#include "store/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <random>
#include <sstream>

#include "base/files.h"

namespace drover::store {
namespace {

constexpr const char* kIdFile = "journal.id";
constexpr const char* kId = "id";
constexpr const char* kStarts = "starts";
constexpr const char* kRestored = "restored";

struct Identity {
  std::string id;  ///< "": not known
  std::uint64_t starts = 0;
};

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// What is no identity is none.
Identity identity_of(const Directory& folder) {
  std::istringstream words(folder.read(kIdFile, 4096).value_or(""));
  Identity identity;
  words >> identity.id >> identity.starts;
  return identity;
}

Result<Identity> identity_of(const Journal& journal) {
  DROVER_TRY(auto id, journal.note(kId));
  DROVER_TRY(const auto starts, journal.note(kStarts));
  return Identity{std::move(id), number_in(starts)};
}

std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

bool differ(const Identity& journal, const Identity& folder) {
  return !journal.id.empty() && !folder.id.empty() && journal.id != folder.id;
}

/// The same bytes in a new file of the folder (0600); its name.
Result<std::string> bring(const Directory& folder, const std::string& path) {
  const UniqueFd source(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source.valid()) return fail_errno(fmt::format("Failed to open '{}'", path), errno);
  auto name = journal_file(folder.path()) + ".XXXXXX";
  const UniqueFd target(::mkostemp(name.data(), O_CLOEXEC));
  if (!target.valid()) return fail_errno(fmt::format("Failed to create '{}'", name), errno);
  const auto abandon = [&](Error error) {
    ::unlink(name.c_str());
    return Failure(std::move(error));
  };
  std::array<char, 65536> piece;
  while (true) {
    const auto count = ::read(source.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return abandon(errno_error(fmt::format("Failed to read '{}'", path), errno));
    if (count == 0) break;
    const std::string_view read(piece.data(), static_cast<std::size_t>(count));
    if (auto written = write_all(target.get(), read, name); !written) return abandon(written.error());
  }
  if (::fsync(target.get()) != 0)
    return abandon(errno_error(fmt::format("Failed to write '{}'", name), errno));
  return name;
}

/// Checks what was brought and marks it as restored to the folder.
Status adapt(const std::string& copy, const std::string& backup, const Identity& folder, bool force) {
  DROVER_TRY(auto journal, Journal::open_existing(copy, backup));
  DROVER_TRY(const auto identity, identity_of(journal));
  if (differ(identity, folder) && !force)
    return fail(ErrorKind::kConflict, fmt::format("'{}' is a backup of another state folder", backup),
                "take it all the same with --force: tasks that wait in it are started here too");
  if (!folder.id.empty()) DROVER_CHECK_OK(journal.set_note(kId, folder.id));
  return journal.set_note(kRestored, "yes");
}

/// Only a whole journal is locked by who uses it; what is damaged is used by nobody.
Status check_unused(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  const auto journal = Journal::open_existing(path, path);
  if (journal || journal.error().kind != ErrorKind::kConflict) return {};
  return fail(ErrorKind::kConflict, journal.error().message, "stop the daemon first: systemctl stop drover");
}

/// The log first: without it the file is still what it was when it was last tidy.
Result<std::string> set_aside(const std::string& path) {
  const auto log = path + "-wal";
  if (::access(path.c_str(), F_OK) != 0 && ::access(log.c_str(), F_OK) != 0) return std::string();
  auto name = path + ".replaced";
  for (int number = 1; ::access(name.c_str(), F_OK) == 0 || ::access((name + "-wal").c_str(), F_OK) == 0;
       ++number)
    name = fmt::format("{}.replaced.{}", path, number);
  for (const auto& [from, to] : {std::pair(log, name + "-wal"), std::pair(path, name)})
    if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT)
      return fail_errno(fmt::format("Failed to rename '{}'", from), errno);
  return name;
}

}  // namespace

std::string journal_file(const std::string& folder) {
  return folder + "/state.db";
}

Result<Joined> join(Journal& journal, const std::string& path) {
  DROVER_TRY(const auto folder, Directory::open(path));
  const auto ours = identity_of(folder);
  DROVER_TRY(auto known, identity_of(journal));
  if (differ(known, ours))
    return fail(
        ErrorKind::kConflict,
        fmt::format("The state file '{}' is of another state folder", journal_file(path)),
        fmt::format("put this folder's own file back, or take this one over, with the daemon stopped: "
                    "drover restore --force --state {} FILE",
                    path));
  // Of a daemon that died.
  for (const auto& name : folder.list().value_or(std::vector<std::string>{}))
    if (name.starts_with("state.db.copy.")) (void)folder.remove_tree(name);
  (void)folder.remove_unfinished("");
  std::vector<std::string> news;
  DROVER_TRY(const auto restored, journal.note(kRestored));
  if (!restored.empty())
    news.emplace_back("The journal was restored from a backup: what happened since then is unknown to it");
  else if (known.id.empty() && known.starts == 0 && ours.starts > 0)
    news.emplace_back(
        "The journal is new, but its folder is not: what was in the one before is unknown to it");
  else if (known.starts < ours.starts)
    news.push_back(
        fmt::format("The journal is older than its folder (of start {}, not {}): what happened since "
                    "then is unknown to it",
                    known.starts, ours.starts));
  auto id = !known.id.empty() ? known.id : !ours.id.empty() ? ours.id : new_id();
  const auto starts = std::max(known.starts, ours.starts) + 1;
  // On a full disk it is the same journal all the same.
  auto noted = journal.set_note(kId, id);
  if (noted) noted = journal.set_note(kStarts, std::to_string(starts));
  if (noted && !restored.empty()) noted = journal.set_note(kRestored, "");
  if (noted) noted = folder.write(kIdFile, fmt::format("{} {}\n", id, starts), 0600);
  if (!noted) news.push_back(to_string(noted.error()));
  return Joined{std::move(id), std::move(news)};
}

Result<std::string> restore(const std::string& path, const std::string& backup, bool force) {
  DROVER_TRY(const auto folder, Directory::create(path, 0711));
  const auto journal = journal_file(path);
  DROVER_CHECK_OK(check_unused(journal));
  DROVER_TRY(const auto copy, bring(folder, backup));
  const auto replace = [&]() -> Result<std::string> {
    DROVER_CHECK_OK(adapt(copy, backup, identity_of(folder), force));
    DROVER_TRY(auto aside, set_aside(journal));
    if (::rename(copy.c_str(), journal.c_str()) != 0)
      return fail_errno(fmt::format("Failed to rename '{}'", copy), errno);
    DROVER_CHECK_OK(folder.sync());
    return aside;
  };
  auto aside = replace();
  if (!aside) ::unlink(copy.c_str());
  return aside;
}

}  // namespace drover::store
