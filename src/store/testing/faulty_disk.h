#pragma once

// A disk that fails when a test says so, below every SQLite file that is opened while it lives: those are to
// be closed before it goes. One at a time.

#include <sqlite3.h>

#include <atomic>
#include <cstring>

namespace drover::store::testing {

class FaultyDisk {
 public:
  FaultyDisk() {
    disk_ = this;
    static_cast<sqlite3_vfs&>(system_) = *real_;
    system_.zName = "drover-faulty";
    system_.pNext = nullptr;
    system_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    system_.xOpen = &FaultyDisk::open;
    system_.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
      return disk_->dead_ ? SQLITE_IOERR_DELETE : disk_->real_->xDelete(disk_->real_, name, sync);
    };
    sqlite3_vfs_register(&system_, 1);
  }
  ~FaultyDisk() {
    sqlite3_vfs_unregister(&system_);
    sqlite3_vfs_register(real_, 1);
    disk_ = nullptr;
  }
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  /// From now on, or after so many more writes: SQLITE_FULL, or another of its codes.
  void fail(int code = SQLITE_FULL, int after = 0) {
    code_ = code;
    left_ = after;
  }
  /// As a process that is killed: after so many more steps nothing that it does reaches the disk, and of what
  /// it was just writing only a part did.
  void die(int after = 0) {
    dying_ = true;
    dead_ = after == 0;
    fail(SQLITE_IOERR_WRITE, after);
  }
  bool dead() const { return dead_; }
  void recover() {
    code_ = SQLITE_OK;
    dying_ = dead_ = false;
  }
  int failures() const { return failures_; }
  /// For tests of many thousand commits, in which nobody cuts the power.
  bool waits_for_disk = true;

 private:
  /// Ours, and behind it the one of the system.
  struct File {
    sqlite3_file base;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };
  static sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real(); }

  int fault() {
    if (code_ == SQLITE_OK || left_-- > 0) return SQLITE_OK;
    ++failures_;
    if (dying_) dead_ = true;
    return code_;
  }
  static int write(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
    const auto real_write = real(f)->pMethods->xWrite;
    const bool was_dead = disk_->dead_;
    const int code = disk_->fault();
    if (code == SQLITE_OK) return real_write(real(f), from, size, at);
    if (disk_->dead_ && !was_dead) real_write(real(f), from, size / 2, at);
    return code;
  }
  /// Of what is no write: who is killed may be so before it.
  int death() { return dying_ ? fault() : SQLITE_OK; }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    auto* const ours = reinterpret_cast<File*>(file);
    ours->base.pMethods = nullptr;
    const int code = disk_->real_->xOpen(disk_->real_, name, ours->real(), flags, out);
    if (code == SQLITE_OK) ours->base.pMethods = methods();
    return code;
  }

  // Version 1: the journal is its file's only user, and needs no memory that is shared.
  static const sqlite3_io_methods* methods() {
    static const sqlite3_io_methods all = {
        .iVersion = 1,
        .xClose = [](sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); },
        .xRead = [](sqlite3_file* f, void* to, int size,
                    sqlite3_int64 at) { return real(f)->pMethods->xRead(real(f), to, size, at); },
        .xWrite = &FaultyDisk::write,
        .xTruncate =
            [](sqlite3_file* f, sqlite3_int64 size) {
              if (const int code = disk_->death()) return code;
              return real(f)->pMethods->xTruncate(real(f), size);
            },
        .xSync =
            [](sqlite3_file* f, int flags) {
              if (const int code = disk_->death()) return code;
              return disk_->waits_for_disk ? real(f)->pMethods->xSync(real(f), flags) : SQLITE_OK;
            },
        .xFileSize = [](sqlite3_file* f,
                        sqlite3_int64* size) { return real(f)->pMethods->xFileSize(real(f), size); },
        .xLock = [](sqlite3_file* f, int level) { return real(f)->pMethods->xLock(real(f), level); },
        .xUnlock = [](sqlite3_file* f, int level) { return real(f)->pMethods->xUnlock(real(f), level); },
        .xCheckReservedLock = [](sqlite3_file* f,
                                 int* held) { return real(f)->pMethods->xCheckReservedLock(real(f), held); },
        .xFileControl = [](sqlite3_file* f, int what,
                           void* with) { return real(f)->pMethods->xFileControl(real(f), what, with); },
        .xSectorSize = [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); },
        .xDeviceCharacteristics =
            [](sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); },
    };
    return &all;
  }

  static inline FaultyDisk* disk_ = nullptr;
  sqlite3_vfs* const real_ = sqlite3_vfs_find(nullptr);
  sqlite3_vfs system_{};
  std::atomic<int> code_ = SQLITE_OK;
  std::atomic<int> left_ = 0;
  std::atomic<bool> dying_ = false;
  std::atomic<bool> dead_ = false;
  std::atomic<int> failures_ = 0;
};

}  // namespace drover::store::testing
