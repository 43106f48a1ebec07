#pragma once

// One lock for each name: who works on the same thing waits for the other. Thread safe.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "base/result.h"

namespace drover::image {

class KeyedLocks {
 public:
  /// Held until it dies. kUnavailable when the wait was stopped.
  Result<std::shared_ptr<const void>> lock(const std::string& key, const std::stop_token& stop) {
    {
      std::unique_lock guard(books_->mutex);
      const bool free = books_->changed.wait(guard, stop, [&] { return !books_->held.contains(key); });
      if (!free) return fail(ErrorKind::kUnavailable, "it was stopped");
      books_->held.insert(key);
    }
    return std::shared_ptr<const void>(books_.get(), [books = books_, key](const void*) {
      {
        const std::lock_guard guard(books->mutex);
        books->held.erase(key);
      }
      books->changed.notify_all();
    });
  }

 private:
  struct Books {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::set<std::string> held;
  };
  std::shared_ptr<Books> books_ = std::make_shared<Books>();
};

}  // namespace drover::image
