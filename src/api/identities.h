#pragma once

// Who callers are, and the users that requests name, by the machine's user database. That may be a service on
// the network: it is asked on threads of its own, once for all who want the same answer, which is kept for
// a while, and whoever waits for it too long is told so. Used on the control strand only.

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/fair_pool.h"
#include "base/result.h"
#include "base/users.h"

namespace drover::api {

struct IdentityOptions {
  std::chrono::milliseconds kept = std::chrono::seconds(30);      ///< how long a user is known
  std::chrono::milliseconds patience = std::chrono::seconds(10);  ///< with the database
  std::function<Result<User>(uid_t, gid_t)> by_uid = user_of;
  std::function<Result<User>(const std::string&)> by_name = find_user;
};

class Identities {
 public:
  explicit Identities(boost::asio::io_context& context, IdentityOptions options = {});
  ~Identities();
  Identities(const Identities&) = delete;
  Identities& operator=(const Identities&) = delete;

  /// The user at the other end of a connection. kUnavailable when the database cannot say, or not in time;
  /// root is root without it, too.
  boost::asio::awaitable<Result<User>> of_peer(uid_t uid, gid_t gid);
  /// As find_user(), for a request of `asker`.
  boost::asio::awaitable<Result<User>> named(std::string name, uid_t asker);

  /// FairPool::stop(): the database is not asked any more. The context must outlive this.
  void stop() { pool_.stop(); }

 private:
  struct Lookup;
  using Find = std::function<Result<User>()>;

  boost::asio::awaitable<Result<User>> look_up(std::string key, std::string who, uid_t asker, Find find);
  std::shared_ptr<Lookup> begin(const std::string& key, uid_t asker, Find find);
  void forget_old();

  boost::asio::io_context& context_;
  const IdentityOptions options_;
  std::map<std::string, std::shared_ptr<Lookup>> lookups_;  ///< under way, or answered lately
  FairPool pool_;
};

}  // namespace drover::api
