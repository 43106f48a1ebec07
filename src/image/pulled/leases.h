#pragma once

// What is in use right now and must not be removed, by name (digests). A lease is taken before the thing is
// looked at; a sweep that is under way keeps in mind all leases that there were while it lasts, so what was
// leased, written down elsewhere and let go meanwhile stays too. Thread safe.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace drover::image {

class Leases {
 public:
  Leases();
  /// For as long as the result lives.
  std::shared_ptr<const void> take(std::vector<std::string> names);

  /// One at a time.
  class Sweep {
   public:
    /// Calls `remove` unless the name is or was leased; nobody takes a lease meanwhile.
    template <typename Function>
    void remove_if_free(const std::string& name, const Function& remove) const {
      const std::lock_guard lock(books_->mutex);
      if (!books_->seen.contains(name)) remove();
    }
    /// Whether it is or was leased.
    bool knows(const std::string& name) const {
      const std::lock_guard lock(books_->mutex);
      return books_->seen.contains(name);
    }
    ~Sweep();
    Sweep(Sweep&&) = default;
    Sweep& operator=(Sweep&&) = delete;

   private:
    friend class Leases;
    struct Books {
      std::mutex mutex;
      std::map<std::string, int> held;
      bool sweeping = false;
      std::set<std::string> seen;  ///< while sweeping
      std::mutex one_sweep;
    };
    explicit Sweep(std::shared_ptr<Books> books);
    std::shared_ptr<Books> books_;
    std::unique_lock<std::mutex> turn_;
  };
  Sweep sweep() const { return Sweep(books_); }

 private:
  std::shared_ptr<Sweep::Books> books_;
};

}  // namespace drover::image
