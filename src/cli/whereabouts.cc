#include "cli/whereabouts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/acting_as.h"
#include "base/decode.h"
#include "base/fd.h"
#include "base/file_view.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/users.h"
#include "cli/context.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to us

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 9> kPassedOn = {"PATH",        "LD_LIBRARY_PATH", "PYTHONPATH",
                                                       "VIRTUAL_ENV", "CONDA_PREFIX",    "CONDA_DEFAULT_ENV",
                                                       "LANG",        "LANGUAGE",        "TZ"};

/// JSON is UTF-8, and paths and variables may be anything.
bool can_be_sent(const std::string& text) {
  return json::parse(to_text(json(text))) == json(text);
}

/// Each container has its own of these.
bool is_of_container(std::string_view folder) {
  return std::ranges::any_of(std::array<std::string_view, 3>{"/dev", "/proc", "/sys"}, [&](auto own) {
    return folder.starts_with(own) && (folder.size() == own.size() || folder[own.size()] == '/');
  });
}

/// What is brought into the sandbox is meant by a relative path.
std::string brought(const json& body) {
  if (body.contains("fetch")) return "what --fetch brings lies there";
  for (const auto& volume : body.value("volumes", json::array()))
    if (const auto place = volume.value("container_path", ""); !place.starts_with('/'))
      return fmt::format("the volume '{}' lies there", place);
  return "";
}

/// Why a task does not start where the caller stands; "" when it does.
std::string obstacle(const json& body, const Whereabouts& caller) {
  if (auto inside = brought(body); !inside.empty()) return inside;
  if (!caller.elsewhere.empty()) return caller.elsewhere;
  if (!caller.closed.empty()) return caller.closed;
  if (is_of_container(caller.folder))
    return fmt::format("'{}' is another folder in its container", caller.folder);
  if (!can_be_sent(caller.folder)) return "the name of this folder is not UTF-8";
  return "";
}

Result<std::string> in_full(const std::string& relative, const Whereabouts& caller, bool image) {
  const auto message = [&](const char* why) {
    return fmt::format("--workdir: '{}' is a relative path, and {}", relative, why);
  };
  constexpr const char* kWrite = "write the path from '/' on";
  if (image)
    return fail(ErrorKind::kInvalid, message("with an image the folder is one of the image's"), kWrite);
  if (!caller.elsewhere.empty()) return fail(ErrorKind::kInvalid, message(caller.elsewhere.c_str()), kWrite);
  if (caller.folder.empty()) return fail(ErrorKind::kInvalid, message(caller.closed.c_str()), kWrite);
  return path_from(caller.folder, relative);
}

/// What lies in the same folder and may be meant; "" for nothing.
std::string meant_path(const std::filesystem::path& path) {
  const auto folder = Directory::open(path.parent_path().string());
  if (!folder) return "";
  const auto names = folder->list().value_or(std::vector<std::string>{});
  const auto name = nearest(path.filename().string(), {names.begin(), names.end()});
  return name.empty() ? "" : (path.parent_path() / name).string();
}

Status check_there(const char* flag, const std::string& said, bool is_folder) {
  const auto path = path_from("/", said);
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return {};  // the daemon has other rights
    const auto meant = meant_path(path);
    return fail(
        ErrorKind::kInvalid, fmt::format("{}: There is no '{}'", flag, path),
        meant.empty() ? "make it first, or check its spelling" : fmt::format("did you mean '{}'?", meant));
  }
  if (!is_folder || S_ISDIR(info.st_mode)) return {};
  return fail(ErrorKind::kInvalid, fmt::format("{}: '{}' is not a folder", flag, path),
              "name the folder that it is in");
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const auto equals = text.find('='); equals != std::string_view::npos)
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

/// Whom the task is to run as; a user that cannot be found is told of by the daemon.
struct Runner {
  bool caller = true;
  Result<User> user;
};
Runner runner_of(const TaskFlags& flags) {
  if (flags.user.empty()) return {};
  auto user = find_user(flags.user);
  const bool caller = user && user->uid == ::geteuid();
  return {caller, std::move(user)};
}

/// Why the folder in which this process is cannot be entered by its path with these rights.
std::string entering(const std::string& folder, const Runner& runner) {
  std::optional<ActingAs> acting;
  if (!runner.caller && runner.user && ::geteuid() == 0) {
    auto started = ActingAs::start(*runner.user);
    if (!started) return started.error().message;
    acting.emplace(std::move(*started));
  }
  // With "/." it is entered, and not only found.
  const UniqueFd entered(::open((folder + "/.").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int error = errno;
  acting.reset();
  if (!entered.valid())
    return fmt::format("{} cannot enter '{}': {}",
                       runner.caller || !runner.user ? "you" : "'" + runner.user->name + "'", folder,
                       ::strerror(error));
  struct stat by_path{};
  struct stat here{};
  if (::fstat(entered.get(), &by_path) != 0 || ::stat(".", &here) != 0 || by_path.st_ino != here.st_ino ||
      by_path.st_dev != here.st_dev)
    return fmt::format("'{}' is not the folder any more that you are in", folder);
  return "";
}

void look_at_folder(Whereabouts& caller, const Runner& runner) {
  std::error_code error;
  auto folder = std::filesystem::current_path(error).string();
  if (error || !folder.starts_with('/')) {  // "(unreachable)/…": of another mount namespace
    caller.closed = "the folder that you are in is not there any more";
    return;
  }
  caller.folder = std::move(folder);
  caller.closed = entering(caller.folder, runner);
}

}  // namespace

std::map<std::string, std::string> passed_on(const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> passed;
  for (const auto& [name, value] : environment)
    if ((std::ranges::find(kPassedOn, name) != kPassedOn.end() || name.starts_with("LC_")) &&
        can_be_sent(name) && can_be_sent(value))
      passed.emplace(name, value);
  return passed;
}

std::string path_from(const std::string& folder, const std::string& relative) {
  auto path = (std::filesystem::path(folder) / relative).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Status find_here(const json& body, const Whereabouts& caller) {
  if (!caller.elsewhere.empty() || body.contains("after") || body.contains("begin")) return {};
  const auto folder = body.value("working_directory", "");
  bool brought = is_of_container(folder);
  for (const auto& volume : body.value("volumes", json::array())) {
    DROVER_CHECK_OK(check_there("--volume", volume.value("host_path", ""), false));
    brought = brought || folder.starts_with(volume.value("container_path", ""));
  }
  if (body.contains("image") || folder.empty() || brought) return {};
  return check_there("--workdir", folder, true);
}

Result<Placed> start_at(json body, const Whereabouts& caller) {
  const bool image = body.contains("image");
  const auto said = body.value("working_directory", "");
  if (!said.empty() && !said.starts_with('/')) {
    DROVER_TRY(body["working_directory"], in_full(said, caller, image));
  }
  if (image) return Placed{std::move(body), ""};
  if (caller.elsewhere.empty() && caller.same_user)
    for (auto& [name, value] : passed_on(caller.environment))
      if (!body["env"].contains(name)) body["env"][name] = value;
  if (!said.empty()) return Placed{std::move(body), ""};
  auto why_not = obstacle(body, caller);
  if (!why_not.empty()) return Placed{std::move(body), "starts in its sandbox: " + std::move(why_not)};
  body["working_directory"] = caller.folder;
  return Placed{std::move(body), ""};
}

Result<Whereabouts> whereabouts(const Client& client, const Endpoint& endpoint, const TaskFlags& flags) {
  Whereabouts caller;
  if (!endpoint.url.empty()) {
    caller.elsewhere = "the daemon that --host names may see other files than you do here";
    return caller;
  }
  DROVER_TRY(const auto version, client.get("/v1/version"));
  const auto view = file_view();
  if (view.empty() || version.value("file_view", "") != view) {
    caller.elsewhere = "the daemon sees other files than you do here";
    return caller;
  }
  const auto runner = runner_of(flags);
  caller.same_user = runner.caller;
  caller.environment = own_environment();
  look_at_folder(caller, runner);
  return caller;
}

Result<json> start_here(const Client& client, const Endpoint& endpoint, const TaskFlags& flags, json body) {
  Whereabouts caller;
  if (!body.contains("image") || body.contains("volumes")) {
    DROVER_TRY(caller, whereabouts(client, endpoint, flags));
  }
  DROVER_TRY(auto placed, start_at(std::move(body), caller));
  DROVER_CHECK_OK(find_here(placed.body, caller));
  if (!placed.note.empty()) report(placed.note);
  return std::move(placed.body);
}

}  // namespace drover::cli
