#pragma once

// Removes what tasks leave behind. That may be millions of files, so it is moved out of the way at once, and
// removed on threads that nobody else waits for, one folder of a user at a time. What a daemon has not
// finished the next one does. Thread safe.

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/fair_pool.h"
#include "base/files.h"
#include "base/result.h"

namespace drover::container {

class Remover {
 public:
  /// `folder` is made; what it holds is removed. It lies on the file system of what is to be removed. `log`
  /// is told, from any thread, what could not be removed.
  static Result<std::unique_ptr<Remover>> start(const std::string& folder,
                                                std::function<void(const std::string&)> log);
  /// Breaks off.
  ~Remover();
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;

  /// Moves the folder `name` away from `parent` and removes it later, as work for `owner`. Absent is fine.
  Status remove(const Directory& parent, const std::string& name, uid_t owner);

 private:
  Remover(Directory folder, std::function<void(const std::string&)> log);
  void remove_later(const std::string& name, uid_t owner);

  Directory folder_;
  std::function<void(const std::string&)> log_;
  std::atomic<std::uint64_t> moved_ = 0;
  std::stop_source stop_;
  FairPool pool_;
};

}  // namespace drover::container
