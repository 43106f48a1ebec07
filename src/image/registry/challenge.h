#pragma once

// What a registry asks for when it answers 401: the header WWW-Authenticate (RFC 9110, 11.6.1). It comes from
// a stranger: what cannot be read is passed over. Pure; thread safe.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace drover::image {

struct Challenge {
  std::string scheme;                             ///< in lower case: "basic", "bearer"
  std::map<std::string, std::string> parameters;  ///< names in lower case: "realm", "service", "scope"
};

/// In the order of the header, at most 16 with 16 parameters each.
std::vector<Challenge> parse_challenges(std::string_view header);

}  // namespace drover::image
