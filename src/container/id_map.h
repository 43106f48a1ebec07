#pragma once

// Root in a container as an ordinary user of the machine: the container's ids are a range of the machine's
// that nobody else has, by a user namespace (user_namespaces(7)); what it sees of files, by id-mapped mounts
// of it (mount_setattr(2)), in which each has the owner that it has on the disk. Thread safe.

#include <sys/types.h>

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "base/users.h"

namespace drover::container {

/// Users and groups alike.
struct IdMap {
  static constexpr std::uint32_t kCount = 65536;
  /// Above what directory services and other engines give out, and below what is negative for some programs.
  static constexpr std::uint32_t kUsualFirst = 0x7F000000;

  std::uint32_t first = 0;  ///< of the machine's ids; 0: the container's are the machine's

  bool maps() const { return first != 0; }
  uid_t on_machine(uid_t inside) const { return maps() && inside < kCount ? first + inside : inside; }
  /// Whether all ids of the user are within.
  bool holds(const User& user) const;

  bool operator==(const IdMap&) const = default;
};

class UserNamespace {
 public:
  /// One with this map, in which nothing runs. kUnsupported where the kernel makes none.
  static Result<UserNamespace> make(const IdMap& map);
  int fd() const { return fd_.get(); }

 private:
  explicit UserNamespace(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace drover::container
