#include "api/identities.h"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>

#include "api/async.h"

namespace drover::api {
namespace {

constexpr std::size_t kMostKnown = 4096;
constexpr FairPool::Limits kLookups{.threads = 32, .at_once = 2, .waiting = 64};

using Clock = std::chrono::steady_clock;

Failure no_answer(const std::string& who) {
  return fail(ErrorKind::kUnavailable, fmt::format("The machine's user database does not say who {} is", who),
              "'getent passwd' asks it, too: look after the services in /etc/nsswitch.conf");
}

}  // namespace

/// One question to the database. Whoever wants its answer waits for `arrival`, which is cancelled then.
struct Identities::Lookup {
  explicit Lookup(boost::asio::io_context& context) : arrival(context) {}

  boost::asio::steady_timer arrival;
  std::optional<Result<User>> answer;
  Clock::time_point answered_at;
};

Identities::Identities(boost::asio::io_context& context, IdentityOptions options)
    : context_(context), options_(std::move(options)), pool_(kLookups) {}

Identities::~Identities() = default;

boost::asio::awaitable<Result<User>> Identities::of_peer(uid_t uid, gid_t gid) {
  auto found = co_await look_up(fmt::format("{}:{}", uid, gid), fmt::format("uid {}", uid), uid,
                                [uid, gid, by_uid = options_.by_uid] { return by_uid(uid, gid); });
  // His rights come of no database, and he is who has to mend it.
  if (!found && uid == 0) co_return User{0, gid, {}, "root", "/root"};
  co_return found;
}

boost::asio::awaitable<Result<User>> Identities::named(std::string name, uid_t asker) {
  co_return co_await look_up("=" + name, fmt::format("'{}'", name), asker,
                             [name, by_name = options_.by_name] { return by_name(name); });
}

boost::asio::awaitable<Result<User>> Identities::look_up(std::string key, std::string who, uid_t asker,
                                                         Find find) {
  const auto known = lookups_.find(key);
  auto lookup = known != lookups_.end() ? known->second : nullptr;
  // An error is for those who have waited for it: the next one asks again.
  if (lookup && lookup->answer && (!*lookup->answer || Clock::now() - lookup->answered_at > options_.kept))
    lookup = nullptr;
  if (!lookup) lookup = begin(key, asker, std::move(find));
  if (lookup && !lookup->answer) (void)co_await lookup->arrival.async_wait(kAsTuple);
  if (!lookup || !lookup->answer) co_return no_answer(who);
  co_return *lookup->answer;
}

/// None when the asker has asked for too much already.
std::shared_ptr<Identities::Lookup> Identities::begin(const std::string& key, uid_t asker, Find find) {
  if (lookups_.size() >= kMostKnown) forget_old();
  auto lookup = std::make_shared<Lookup>(context_);
  lookup->arrival.expires_after(options_.patience);
  auto work = boost::asio::make_work_guard(context_);
  const bool asked =
      pool_.post(asker, [&context = context_, lookup, find = std::move(find), work = std::move(work)] {
        boost::asio::post(context, [lookup, answer = find()] {
          lookup->answered_at = Clock::now();
          lookup->answer = answer;
          lookup->arrival.cancel();
        });
      });
  if (!asked) return nullptr;
  lookups_.insert_or_assign(key, lookup);
  return lookup;
}

void Identities::forget_old() {
  std::erase_if(lookups_, [](const auto& one) { return one.second->answer.has_value(); });
}

}  // namespace drover::api
