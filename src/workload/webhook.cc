#include "workload/webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>

namespace drover::workload {
namespace {

constexpr std::size_t kLongest = 2048;

Failure refusal(std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("the URL to notify {}", why),
              "write it as for example https://example.org/runs");
}

}  // namespace

Result<Webhook> parse_webhook(std::string_view url) {
  if (url.size() > kLongest) return refusal(fmt::format("is longer than {} bytes", kLongest));
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed) return refusal("is no URL");
  const auto scheme = parsed->scheme_id();
  if (scheme != boost::urls::scheme::http && scheme != boost::urls::scheme::https)
    return refusal("is not of http or https");
  Webhook hook;
  hook.secure = scheme == boost::urls::scheme::https;
  hook.host = parsed->host_address();
  if (hook.host.empty()) return refusal("names no host");
  if (std::ranges::any_of(hook.host, [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
    return refusal("has a host that there cannot be");  // escapes are decoded by now
  hook.port = hook.secure ? 443 : 80;
  if (const std::string port(parsed->port()); !port.empty()) {
    const auto* end = port.data() + port.size();
    const auto [last, error] = std::from_chars(port.data(), end, hook.port);
    if (error != std::errc() || last != end || hook.port < 1 || hook.port > 65535)
      return refusal("has no port that there is");
  }
  hook.target = std::string(parsed->encoded_resource());
  hook.target.erase(std::min(hook.target.find('#'), hook.target.size()));
  if (!hook.target.starts_with('/')) hook.target.insert(0, "/");
  if (parsed->has_userinfo()) hook.credentials = parsed->userinfo();
  return hook;
}

}  // namespace drover::workload
