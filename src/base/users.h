#pragma once

// Users of this machine: whom a task runs as. Looks into the system's own user database (NSS); blocks, for as
// long as a name service on the network likes. A database that cannot be asked is an error, and not a user
// without a name. Thread safe.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace drover {

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  ///< supplementary groups, sorted, without gid
  std::string name;           ///< "1000" where the database has no name for the uid
  std::string home = "/";

  bool operator==(const User&) const = default;
};

/// A name or a decimal uid. kNotFound when there is none; kUnavailable when the database cannot say.
Result<User> find_user(const std::string& name_or_uid);
/// A uid is always a user, also one that no database knows (then: no groups, home "/"). kUnavailable when the
/// database cannot say.
Result<User> user_of(uid_t uid, gid_t fallback_gid);

}  // namespace drover
