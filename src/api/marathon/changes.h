#pragma once

// From a definition that was read to services that change: whose they are, whom they run as, what locks them,
// and the answer. Used on the control strand.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/http.h"
#include "api/marathon/handlers.h"
#include "api/marathon/world.h"
#include "control/event.h"
#include "marathon/app.h"

namespace drover::api::marathon_v2 {

/// With the service ports that are taken, and as strict as the daemon was told to be.
marathon::Options options_for(const Services& services);

/// Whom an app names to run as, looked up; none when it names nobody. Blocks in between.
using Users = std::map<std::string, Result<User>>;
asio::awaitable<Users> find_users(const Services& services, uid_t asker,
                                  std::vector<std::optional<std::string>> names);

/// By group: absolute paths that it depends on.
using GroupDependencies = std::map<std::string, std::vector<std::string>>;

/// Makes the service complete: owner, user, the dependencies of its groups, as they are or as they are
/// changed with it. `existing` is what it was, or null. An error when the caller may not have it so.
Status complete(const World& world, marathon::App& app, const control::ServiceRecord* existing,
                const Users& users, const GroupDependencies& groups = {});

/// Whether the caller may bring back a definition that a service had before `present`: kPermissionDenied when
/// it runs as somebody else, and more than the number of instances is another.
Status check_definition(const World& world, const workload::Service& wanted,
                        const workload::Service& present);

/// What stands against an id: an app above it or groups below it. kInvalid, or none.
Status check_place(const World& world, const std::string& id);

/// Whether the change is to take the place of deployments under way: by ?force=true, or by ?force=unlessUp
/// when nothing of theirs is up yet (control::may_supersede). `otherwise`: without such a parameter.
bool is_forced(const Request& request, const World& world, const control::event::ServicesChanged& change,
               bool otherwise = false);

/// Does it, in a transaction; the deployment that it became, or the answer that refuses it.
tl::expected<control::Made, Response> deploy(const Services& services, const World& world,
                                             control::event::ServicesChanged change);

/// What `run` answers in a transaction, or that it cannot be kept.
AnswerLater transacted(const Services& services, std::function<Answer()> run);
/// Makes a Handler of a function that changes the state and answers.
template <Answer (*function)(const Services&, const Request&)>
AnswerLater transacted(const Services& services, const Request& request) {
  return transacted(services, [&] { return function(services, request); });
}

/// Deployments under way that touch any of them.
std::vector<std::string> locks_on(const World& world, const std::vector<std::string>& services);

}  // namespace drover::api::marathon_v2
