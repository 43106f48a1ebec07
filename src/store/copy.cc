#include "store/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

namespace drover::store {
namespace {

constexpr int kPiecePages = 256;

}  // namespace

void Copy::Closer::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

void Copy::Closer::operator()(sqlite3_backup* backup) const {
  sqlite3_backup_finish(backup);
}

Copy::~Copy() {
  unlink();
}

void Copy::unlink() noexcept {
  if (path_) ::unlink(path_->c_str());
  path_.reset();
}

Error Copy::error(const char* what) const {
  const int code = sqlite3_errcode(file_.get());
  const bool full = code == SQLITE_FULL || sqlite3_system_errno(file_.get()) == ENOSPC;
  return {full ? ErrorKind::kExhausted : ErrorKind::kInternal,
          fmt::format("{} '{}': {}", what, *path_, sqlite3_errmsg(file_.get())),
          full ? "free some space on that file system" : "", ""};
}

Result<Copy> Copy::begin(sqlite3* journal, const std::string& path) {
  Copy copy;
  auto name = std::make_unique<std::string>(path + ".XXXXXX");
  if (const UniqueFd made(::mkostemp(name->data(), O_CLOEXEC)); !made.valid())
    return fail_errno(fmt::format("Failed to make a copy beside '{}'", path), errno);
  copy.path_ = std::move(name);
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(copy.path_->c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  copy.file_.reset(raw);
  if (code != SQLITE_OK) return Failure(copy.error("Failed to open"));
  // It is whole before anybody sees it: it needs no safety of its own.
  sqlite3_exec(raw, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
  copy.backup_.reset(sqlite3_backup_init(raw, "main", journal, "main"));
  if (!copy.backup_) return Failure(copy.error("Failed to begin"));
  return copy;
}

Result<bool> Copy::step() {
  switch (sqlite3_backup_step(backup_.get(), kPiecePages)) {
    case SQLITE_OK:
      return false;
    case SQLITE_DONE:
      return true;
    default:
      sqlite3_backup_finish(backup_.release());  // makes the failure the file's own
      auto why = error("Failed to write");
      unlink();
      return Failure(std::move(why));
  }
}

Result<UniqueFd> Copy::take() {
  backup_.reset();
  file_.reset();
  UniqueFd file(::open(path_->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return fail_errno(fmt::format("Failed to open '{}'", *path_), errno);
  unlink();
  return file;
}

}  // namespace drover::store
