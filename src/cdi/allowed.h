#pragma once

// Who may have which devices, by the rules that an administrator gave:
//
//   [WHO,...:]KIND[=NAME]        vendor.com/net            everybody has all devices of this kind
//                                alice,@net:vendor.com/net=eth1   alice and the members of net have this one
//
// What no rule names is root's alone. Values; thread safe as values are.

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/users.h"
#include "cdi/names.h"

namespace drover::cdi {

class Allowed {
 public:
  /// Looks names up in the system's user database; blocks. kInvalid for a rule that is none, and for a user
  /// or a group that is not there.
  static Result<Allowed> parse(const std::vector<std::string>& rules);

  /// kPermissionDenied when the user may not have it. Root may have everything, and is not asked for here.
  Status check(const DeviceName& device, const User& user) const;

 private:
  struct Rule {
    std::string kind;
    std::string name;  ///< "" for every device of the kind
    bool everybody = false;
    std::set<uid_t> users;
    std::set<gid_t> groups;
  };
  static Result<Rule> parse_rule(const std::string& text);

  std::vector<Rule> rules_;
};

}  // namespace drover::cdi
