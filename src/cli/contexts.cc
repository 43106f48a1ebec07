#include "cli/contexts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/decode.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/users.h"
#include "cli/cli.h"
#include "workload/resource_fields.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMostContextBytes = 1 << 20;
constexpr int kFormat = 1;

NamedContext decode_one(Decoder& fields) {
  NamedContext context;
  context.socket = fields.string("socket").value_or("");
  context.host = fields.string("host").value_or("");
  context.token = fields.string("token").value_or("");
  context.ca_file = fields.string("ca_file").value_or("");
  context.kubeconfig = fields.string("kubeconfig").value_or("");
  context.kube_context = fields.string("kube_context").value_or("");
  context.name_space = fields.string("namespace").value_or("");
  context.service = fields.string("service").value_or("");
  const auto places = {&context.socket, &context.host, &context.kubeconfig};
  if (std::ranges::count_if(places, [](const auto* place) { return !place->empty(); }) != 1)
    fields.mistake("", "it has one of 'socket', 'host' and 'kubeconfig'");
  if (!context.kubeconfig.empty())
    if (const auto good = check_service(context); !good) fields.mistake("service", good.error().message);
  fields.finish();
  return context;
}

/// As Kubernetes names Services and ports (RFC 1123): nothing of it leads elsewhere in a path.
bool is_label(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= kLongest && std::ranges::all_of(text, fits);
}

std::string environment_folder(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

}  // namespace

Result<NamedContext> Contexts::find(const std::string& name) const {
  if (const auto found = all.find(name); found != all.end()) return found->second;
  std::set<std::string> names;
  for (const auto& [known, unused] : all) names.insert(known);
  const auto meant = nearest(name, names);
  return fail(ErrorKind::kNotFound, fmt::format("There is no context '{}'", name),
              meant.empty() ? "'drover context ls' lists them" : fmt::format("did you mean '{}'?", meant));
}

Status check_service(const NamedContext& context) {
  const auto colon = context.service.find(':');
  const bool whole = colon != std::string::npos && is_label(context.name_space) &&
                     is_label(context.service.substr(0, colon)) &&
                     is_label(context.service.substr(colon + 1));
  if (whole) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("'{}' in the namespace '{}' cannot be a Service and its port", context.service,
                          context.name_space),
              "write it as NAME or NAME:PORT, in lower case");
}

Result<Gateway> find_gateway(const Hooks& hooks, const NamedContext& context) {
  DROVER_TRY(auto gateway, hooks.api_server(context.kubeconfig, context.kube_context));
  gateway.path =
      fmt::format("/api/v1/namespaces/{}/services/http:{}/proxy", context.name_space, context.service);
  return gateway;
}

std::string whereabouts_of(const NamedContext& context) {
  if (!context.socket.empty()) return context.socket;
  if (!context.host.empty()) return context.host;
  return fmt::format("{}/{} by {}", context.name_space, context.service, context.kubeconfig);
}

Status check_context_name(const std::string& name) {
  if (name == kNoContext)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' stands for the daemon of this machine", name),
                "choose another name");
  if (workload::is_plain_name(name)) return {};
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a name of a context", name),
              "a name is 1 to 64 letters, digits, '.', '_' or '-'");
}

json encode(const Contexts& contexts) {
  json all = json::object();
  for (const auto& [name, context] : contexts.all) {
    auto& one = all[name] = json::object();
    for (const auto& [field, value] :
         {std::pair("socket", &context.socket), std::pair("host", &context.host),
          std::pair("token", &context.token), std::pair("ca_file", &context.ca_file),
          std::pair("kubeconfig", &context.kubeconfig), std::pair("kube_context", &context.kube_context),
          std::pair("namespace", &context.name_space), std::pair("service", &context.service)})
      if (!value->empty()) one[field] = *value;
  }
  return {{"format", kFormat}, {"used", contexts.used}, {"contexts", std::move(all)}};
}

Result<Contexts> decode_contexts(const json& value) {
  std::vector<Error> mistakes;
  Decoder fields(value, mistakes);
  Contexts contexts;
  fields.format(kFormat);
  contexts.used = fields.string("used").value_or("");
  if (auto all = fields.object("contexts")) {
    for (const auto& [name, unused] : value.at("contexts").items()) {
      if (const auto named = check_context_name(name); !named) all->mistake(name, named.error().message);
      if (auto one = all->object(name)) contexts.all[name] = decode_one(*one);
    }
    all->finish();
  }
  if (!contexts.used.empty() && !contexts.all.contains(contexts.used))
    fields.mistake("used", fmt::format("there is no context '{}'", contexts.used));
  fields.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The file of contexts"));
  return contexts;
}

Result<std::string> contexts_path() {
  auto folder = environment_folder("XDG_CONFIG_HOME");
  if (folder.empty()) {
    auto home = environment_folder("HOME");
    if (home.empty()) {
      DROVER_TRY(const auto user, user_of(::geteuid(), ::getegid()));
      home = user.home;
    }
    folder = home == "/" ? "" : home + "/.config";
  }
  if (folder.empty())
    return fail(ErrorKind::kNotFound, "You have no home folder in which contexts could be kept", "set HOME");
  return folder + "/drover/contexts.json";
}

Result<Contexts> read_contexts() {
  const auto path = contexts_path();
  if (!path) return Contexts{};
  const auto text = read_file(*path, kMostContextBytes);
  if (!text && text.error().kind == ErrorKind::kNotFound) return Contexts{};
  if (!text) return Failure(text.error());
  struct stat status{};
  if (::stat(path->c_str(), &status) == 0 && (status.st_mode & 077) != 0)
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("Others may read or change '{}', where your tokens are", *path),
                fmt::format("close it: chmod 600 {}", *path));
  const auto about_file = [&](const Error& error) {
    return Failure(context(error, fmt::format("'{}' cannot be used", *path)));
  };
  const auto value = parse_json(*text, "it");
  if (!value) return about_file(value.error());
  auto contexts = decode_contexts(*value);
  if (!contexts) return about_file(contexts.error());
  return contexts;
}

Status write_contexts(const Contexts& contexts) {
  DROVER_TRY(const auto path, contexts_path());
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder.parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(fmt::format("Failed to make '{}'", folder.string()), errno);
  return write_file(path, to_text(encode(contexts), 2) + "\n", 0600);
}

}  // namespace drover::cli
