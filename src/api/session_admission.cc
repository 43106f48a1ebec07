// Who asks.

#include <fmt/format.h>

#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "api/session.h"
#include "api/workers.h"
#include "base/text.h"
#include "base/units.h"
#include "control/executors.h"

namespace drover::api {
namespace {

/// By which names the client calls us: in `Host`, and in a target that is a whole URL. None at all only when
/// a request of HTTP/1.0 says none, as HAProxy's checks do: every browser sends `Host`.
std::vector<std::string> called_names(const http::request_header<>& header) {
  std::vector<std::string> names;
  const auto target = header.target();
  if (const auto authority = target_authority({target.data(), target.size()}); !authority.empty())
    names.emplace_back(authority);
  const auto [first, last] = header.equal_range(http::field::host);
  for (auto field = first; field != last; ++field) names.emplace_back(field->value());
  constexpr unsigned kHttp11 = 11;
  if (first == last && header.version() >= kHttp11) names.emplace_back();
  return names;
}

/// What is said of who asks.
struct Shown {
  std::string authorization;
  bool proxied = false;  ///< it stands in the header that is for that
};

/// Who says two things may mean to be taken for another than a proxy has looked at.
Result<Shown> shown_in(const http::fields& header) {
  Shown shown;
  bool said = false;
  for (const auto& field : header) {
    const std::string_view name(field.name_string().data(), field.name_string().size());
    const bool proxied = equal_without_case(name, kProxiedAuthorization);
    if (!proxied && field.name() != http::field::authorization) continue;
    const std::string value(field.value());
    if (std::exchange(said, true) && value != shown.authorization)
      return fail(ErrorKind::kUnauthenticated, "The request shows two different secrets",
                  fmt::format("show one, in Authorization or in {}", kProxiedAuthorization));
    shown.authorization = value;
    shown.proxied = shown.proxied || proxied;
  }
  return shown;
}

}  // namespace

asio::awaitable<Result<Asker>> Session::admit(const http::request_header<>& header) {
  const auto forbidden = [](std::string message, std::string hint) {
    return fail(ErrorKind::kPermissionDenied, std::move(message), std::move(hint));
  };
  const auto shown_origin = header[http::field::origin];
  const std::string origin(shown_origin.data(), shown_origin.size());
  if (peer_) {
    if (!origin.empty()) co_return forbidden("Web pages may not use the unix socket", "");
    co_return Asker{.caller = peer_};
  }
  auto shown = shown_in(header);
  if (!shown) co_return Failure(std::move(shown).error());
  const auto names = called_names(header);
  // Behind a proxy the name is the proxy's. A page that points a name of its own at us knows no secret.
  for (const auto& name : names)
    if (!shown->proxied && !is_pods_endpoint(name) && !is_own_name(name))
      co_return forbidden(fmt::format("'{}' is not a name of this server", name),
                          page_of_ ? "use 127.0.0.1, as 'drover ui' says"
                                   : fmt::format("use {}, or start the daemon with --host-name NAME",
                                                 to_string(*shared_->listen)));
  if (!origin.empty() && (names.empty() || !origin_allowed(origin, names.back())))
    co_return forbidden(fmt::format("Pages from '{}' may not use this server", origin), "");
  if (shown->authorization.empty() && !shown->proxied)
    co_return Asker{.caller = shared_->anonymous && !page_of_
                                  ? std::optional(engine::Caller{*shared_->anonymous})
                                  : std::nullopt};
  co_return co_await admit_known(std::move(shown->authorization));
}

bool Session::is_own_name(std::string_view name) const {
  if (!page_of_) return host_allowed(name, *shared_->listen, shared_->names);
  return is_loopback_name(name);
}

bool Session::is_pods_endpoint(std::string_view name) const {
  return !name.empty() && equal_without_case(name, shared_->pods_endpoint);
}

std::optional<Result<Asker>> Session::find_executor(std::string_view token) const {
  const auto task = shared_->executor_tokens ? shared_->executor_tokens->task_of(token) : std::nullopt;
  if (!task) return std::nullopt;
  if (control::executor_in(shared_->services.daemon->state(), *task) != nullptr)
    return Asker{.executor = *task};
  return fail(ErrorKind::kUnauthenticated, "The executor whose token this is has ended");
}

asio::awaitable<Result<Asker>> Session::admit_known(std::string authorization) {
  if (auto executor = find_executor(bearer_token(authorization))) co_return std::move(*executor);
  auto* const logins = shared_->services.logins;
  const auto token = bearer_token(authorization);
  const auto now = wall_clock();
  if (logins != nullptr && !token.empty()) {
    if (auto name = logins->user_of(token, now)) co_return co_await admit_named(*std::move(name), true);
    if (auto name = logins->redeem(token, now)) co_return co_await admit_named(*std::move(name), false);
  }
  auto name = page_of_ ? std::nullopt : authenticate(shared_->credentials, authorization);
  if (!name) co_return Failure(co_await refuse_secret());
  if (*name == kMetricsReader) co_return Asker{.metrics_reader = true};
  co_return co_await admit_named(*std::move(name), false);
}

asio::awaitable<Result<Asker>> Session::admit_named(std::string name, bool logged_in) {
  constexpr uid_t kNotKnownYet = static_cast<uid_t>(-1);
  auto user = co_await shared_->services.workers->users.named(name, kNotKnownYet);
  if (!user) co_return Failure(context(user.error(), "The credentials name an unknown user"));
  if (page_of_ && user->uid != page_of_->user.uid)
    co_return fail(ErrorKind::kPermissionDenied, fmt::format("This page is not {}'s", user->name));
  co_return Asker{.caller = engine::Caller{std::move(*user)}, .logged_in = logged_in};
}

/// Later, so that nobody guesses fast. Those who know a secret do not wait, wherever they come from: on
/// loopback all users of the machine have one address.
asio::awaitable<Error> Session::refuse_secret() {
  const auto line = shared_->wrong_secrets->note(address_, std::chrono::steady_clock::now());
  if (line && shared_->log) shared_->log(*line);
  co_await pause_until(std::chrono::steady_clock::now() + shared_->limits.wrong_secret_pause);
  co_return Error{ErrorKind::kUnauthenticated, "The token or password is wrong",
                  "the daemon's credentials file has the right one", ""};
}

}  // namespace drover::api
