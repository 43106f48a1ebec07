// The web page: its files, which anybody may read, and who may use it.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/access.h"
#include "api/logins.h"
#include "api/native/handlers.h"
#include "base/units.h"
#include "ui/files.h"

namespace drover::api {
namespace {

using nlohmann::json;

/// Nothing but what comes from here: no script, style or picture of anybody else's, and no frame around it.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
constexpr const char* kNoPage =
    "This build of Drover has no web page: Node.js and npm make it. The command line does all of it too: "
    "drover --help\n";

Response file_response(const ui::File& file, const Request& request) {
  const auto tag = fmt::format("\"{}\"", file.digest);
  Response response;
  response.content_type = file.type;
  // Those with a digest in their names never change.
  const bool stays = file.name.find('-') != file.name.npos;
  response.headers = {{"Cache-Control", stays ? "public, max-age=31536000, immutable" : "no-cache"},
                      {"ETag", tag},
                      {"Content-Encoding", "gzip"},
                      {"Content-Security-Policy", kPolicy},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"}};
  const auto known = request.headers.find("if-none-match");
  if (known != request.headers.end() && known->second == tag)
    response.status = 304;
  else
    response.body = file.content;
  return response;
}

Result<Logins*> logins_of(const Services& services) {
  if (services.logins != nullptr) return services.logins;
  return fail(ErrorKind::kUnsupported, "Nobody can log in to this daemon");
}

}  // namespace

Result<Response> get_ui(const Services&, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  const auto given = request.parameters.find("file");
  const std::string name = given == request.parameters.end() ? "" : given->second;
  if (ui::kFiles.empty())
    return Response{.status = 404, .content_type = "text/plain; charset=utf-8", .body = kNoPage};
  if (const auto* file = ui::find(name)) return file_response(*file, request);
  // Any other address is that of a view, but for files of another version.
  if (name.find('.') != name.npos)
    return fail(ErrorKind::kNotFound, fmt::format("The page has no file '{}'", name));
  return file_response(*ui::find("index.html"), request);
}

Result<Response> log_in(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_TRY(auto* const logins, logins_of(services));
  if (request.logged_in)
    return fail(ErrorKind::kPermissionDenied, "A session makes no other one",
                "log in with a token, or by 'drover ui'");
  const auto& user = request.caller->user;
  const auto session = logins->begin(user.name, wall_clock());
  return json_response({{"token", session.token},
                        {"until", format_time(session.until)},
                        {"user", {{"name", user.name}, {"uid", user.uid}}}});
}

Result<Response> log_out(const Services& services, const Request& request) {
  DROVER_TRY(auto* const logins, logins_of(services));
  Query query(request);
  DROVER_CHECK_OK(query.finish());
  const auto shown = request.headers.find("drover-session");
  if (shown != request.headers.end()) logins->end(shown->second, wall_clock());
  return Response{.status = 204, .content_type = ""};
}

Result<Response> make_ticket(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_TRY(auto* const logins, logins_of(services));
  DROVER_TRY(const auto ticket, logins->ticket(request.caller->user.name, wall_clock()));
  return json_response({{"ticket", ticket}});
}

Result<Response> open_page(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_CHECK_OK(check_upgrade(request, "drover-page"));
  DROVER_CHECK_OK(logins_of(services).map([](auto*) {}));
  auto response = upgrade_response("drover-page", {});
  response.opens_page = true;
  return response;
}

Result<Response> open_socket(const Services&, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_CHECK_OK(check_upgrade(request, "websocket"));
  Response response{.status = 101};
  response.opens_socket = true;
  return response;
}

Result<Response> who_am_i(const Services&, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  const auto& user = request.caller->user;
  return json_response({{"name", user.name}, {"uid", user.uid}, {"root", user.uid == 0}});
}

}  // namespace drover::api
