#include "api/logins.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/secret_file.h"

namespace drover::api {
namespace {

constexpr std::string_view kSessionBegin = "session.";
constexpr std::string_view kTicketBegin = "ticket.";

std::int64_t seconds_of(Logins::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string_view user_in(std::string_view text) {
  return text.substr(0, text.rfind('.'));
}

/// "root.1795945943": what the code is of. None when it is no such thing.
std::optional<Logins::Time> end_in(std::string_view text) {
  const auto dot = text.rfind('.');
  if (dot == text.npos) return std::nullopt;
  const auto number = text.substr(dot + 1);
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), seconds);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return Logins::Time(std::chrono::seconds(seconds));
}

}  // namespace

Result<Logins> Logins::open(const std::string& path) {
  return open_key(path, "The key of sessions", "remove it: whoever uses the page logs in again")
      .map([](std::string&& key) { return Logins(std::move(key)); });
}

void Logins::set_credentials(const std::vector<Credential>& credentials) {
  secrets_.clear();
  for (const auto& [user, secret] : credentials) secrets_[user] += secret + '\n';
}

/// `text`: as in end_in().
std::string Logins::code_of(std::string_view text) const {
  const auto known = secrets_.find(user_in(text));
  return api::code_of(key_, fmt::format("{}\n{}", text, known == secrets_.end() ? "" : known->second));
}

Logins::Session Logins::begin(const std::string& user, Time now) const {
  const auto until = seconds_of(now + kSession);
  const auto text = fmt::format("{}.{}", user, until);
  return {fmt::format("{}{}.{}", kSessionBegin, text, code_of(text)), Time(std::chrono::seconds(until))};
}

std::optional<std::string> Logins::user_of(std::string_view session, Time now) const {
  const auto dot = session.rfind('.');
  if (!session.starts_with(kSessionBegin) || dot == session.npos || dot < kSessionBegin.size())
    return std::nullopt;
  const auto text = session.substr(kSessionBegin.size(), dot - kSessionBegin.size());
  if (!is_same_secret(code_of(text), session.substr(dot + 1)) || ended_.contains(session))
    return std::nullopt;
  const auto until = end_in(text);
  if (!until || now >= *until) return std::nullopt;
  return std::string(user_in(text));
}

void Logins::end(std::string_view session, Time now) {
  std::erase_if(ended_, [&](const auto& ended) { return ended.second <= now; });
  if (user_of(session, now)) ended_.emplace(session, now + kSession);
}

Result<std::string> Logins::ticket(const std::string& user, Time now) {
  DROVER_TRY(const auto secret, random_secret());
  std::erase_if(tickets_, [&](const auto& ticket) { return ticket.second.until <= now; });
  const auto is_users = [&](const auto& ticket) { return ticket.second.user == user; };
  if (std::ranges::count_if(tickets_, is_users) >= static_cast<std::ptrdiff_t>(kTicketsOfOne)) {
    auto oldest = std::ranges::find_if(tickets_, is_users);
    for (auto other = oldest; other != tickets_.end(); ++other)
      if (is_users(*other) && other->second.until < oldest->second.until) oldest = other;
    tickets_.erase(oldest);
  }
  auto made = fmt::format("{}{}", kTicketBegin, secret);
  tickets_.emplace(made, Ticket{user, now + kTicket});
  return made;
}

std::optional<std::string> Logins::redeem(std::string_view ticket, Time now) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return std::nullopt;
  const auto known = std::move(found->second);
  tickets_.erase(found);
  if (now >= known.until) return std::nullopt;
  return known.user;
}

}  // namespace drover::api
