#include "container/docker/answers.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/decode.h"
#include "base/shorten.h"

namespace drover::container::docker {
namespace {

using nlohmann::json;

/// A field of an object; null when it is absent, or when `value` is no object.
const json& field(const json& value, const char* name) {
  static const json kNull;
  if (!value.is_object()) return kNull;
  const auto found = value.find(name);
  return found == value.end() ? kNull : *found;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

std::int64_t number_of(const json& value) {
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

std::uint64_t size_of(const json& value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number_of(value), 0));
}

bool is_true(const json& value) {
  return value.is_boolean() && value.get<bool>();
}

std::vector<std::string> texts_of(const json& value) {
  std::vector<std::string> texts;
  if (value.is_string()) texts.push_back(value.get<std::string>());
  if (value.is_array())
    for (const auto& entry : value) texts.push_back(text_of(entry));
  return texts;
}

Result<json> parse_object(std::string_view text, std::string_view what) {
  DROVER_TRY(auto value, parse_json(text, what));
  if (!value.is_object()) return fail(ErrorKind::kCorrupt, std::string(what) + " is no JSON object");
  return value;
}

int exit_code_of(const json& value) {
  return static_cast<int>(std::clamp<std::int64_t>(number_of(value), 0, 255));
}

}  // namespace

Result<Version> parse_version(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The version of the Docker Engine"));
  Version version;
  version.name = "Docker Engine";
  const auto& components = field(value, "Components");
  if (components.is_array() && !components.empty())
    if (const auto name = text_of(field(components.front(), "Name")); name != "" && name != "Engine")
      version.name = shortened(name, 100);
  if (components.is_array())
    for (const auto& component : components)
      version.components[text_of(field(component, "Name"))] =
          shortened(text_of(field(component, "Version")), 100);
  version.version = shortened(text_of(field(value, "Version")), 100);
  version.newest_api = text_of(field(value, "ApiVersion"));
  version.oldest_api = text_of(field(value, "MinAPIVersion"));
  return version;
}

Result<ImageFacts> parse_image(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The Docker Engine's description of the image"));
  ImageFacts facts;
  facts.id = text_of(field(value, "Id"));
  const auto& config = field(value, "Config");
  facts.config.entrypoint = texts_of(field(config, "Entrypoint"));
  facts.config.command = texts_of(field(config, "Cmd"));
  for (const auto& assignment : texts_of(field(config, "Env")))
    if (const auto equals = assignment.find('='); equals != std::string::npos && equals > 0)
      facts.config.environment.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  facts.config.user = text_of(field(config, "User"));
  facts.config.working_directory = text_of(field(config, "WorkingDir"));
  if (const auto& labels = field(config, "Labels"); labels.is_object())
    for (const auto& [name, label] : labels.items()) facts.config.labels[name] = text_of(label);
  if (const auto& volumes = field(config, "Volumes"); volumes.is_object())
    for (const auto& [place, nothing] : volumes.items()) facts.volumes.push_back(place);
  facts.config.architecture = text_of(field(value, "Architecture"));
  return facts;
}

Result<ContainerState> parse_container(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The Docker Engine's description of the container"));
  const auto& state = field(value, "State");
  ContainerState container;
  container.id = text_of(field(value, "Id"));
  container.status = text_of(field(state, "Status"));
  container.running = is_true(field(state, "Running"));
  container.out_of_memory = is_true(field(state, "OOMKilled"));
  container.exit_code = exit_code_of(field(state, "ExitCode"));
  container.pid = static_cast<int>(std::clamp<std::int64_t>(number_of(field(state, "Pid")), 0, 1 << 30));
  container.entrypoint = texts_of(field(field(value, "Config"), "Entrypoint"));
  container.error = shortened(text_of(field(state, "Error")));
  return container;
}

Result<ExecState> parse_exec(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The Docker Engine's description of the command"));
  return ExecState{is_true(field(value, "Running")), exit_code_of(field(value, "ExitCode"))};
}

Result<std::string> parse_id(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The Docker Engine's answer"));
  auto id = text_of(field(value, "Id"));
  if (id.empty() || id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(ErrorKind::kCorrupt, "The Docker Engine created something and does not say its id");
  return id;
}

Result<std::vector<std::string>> parse_ids(std::string_view text) {
  DROVER_TRY(const auto value, parse_json(text, "The Docker Engine's list of containers"));
  std::vector<std::string> ids;
  if (value.is_array())
    for (const auto& entry : value)
      if (auto id = text_of(field(entry, "Id")); !id.empty()) ids.push_back(std::move(id));
  return ids;
}

Result<int> parse_exit_code(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The Docker Engine's answer"));
  if (!field(value, "StatusCode").is_number_integer())
    return fail(ErrorKind::kCorrupt, "The Docker Engine does not say how the container ended");
  return exit_code_of(value["StatusCode"]);
}

Result<std::vector<std::string>> parse_shortcomings(std::string_view text) {
  DROVER_TRY(const auto value, parse_object(text, "The Docker Engine's description of itself"));
  constexpr std::array<std::pair<const char*, const char*>, 4> kWanted = {{{"MemoryLimit", "limit memory"},
                                                                           {"CpuCfsQuota", "limit CPU time"},
                                                                           {"CPUSet", "pin CPUs"},
                                                                           {"PidsLimit", "limit processes"}}};
  std::vector<std::string> lacking;
  for (const auto& [name, what] : kWanted)
    if (const auto& able = field(value, name); able.is_boolean() && !able.get<bool>())
      lacking.push_back(std::string("it cannot ") + what);
  return lacking;
}

std::string parse_refusal(std::string_view text) {
  const auto value = json::parse(text, nullptr, false);
  auto message = text_of(field(value, "message"));
  if (message.empty()) message = text;
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  for (auto& c : message)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return shortened(std::move(message));
}

/// The mode is Go's: https://pkg.go.dev/io/fs#FileMode.
Result<PathStat> parse_path_stat(std::string_view header) {
  constexpr std::int64_t kFolder = 1LL << 31, kLink = 1LL << 27, kNoFile = 0x8f280000;
  const auto text = decode_base64(header);
  if (!text) return fail(ErrorKind::kCorrupt, "The Docker Engine does not say what lies at a path");
  DROVER_TRY(const auto value, parse_object(*text, "The Docker Engine's description of a file"));
  const auto mode = number_of(field(value, "mode"));
  PathStat stat;
  if ((mode & kFolder) != 0)
    stat.kind = PathStat::Kind::kFolder;
  else if ((mode & kLink) != 0)
    stat.kind = PathStat::Kind::kLink;
  else if ((mode & kNoFile) == 0)
    stat.kind = PathStat::Kind::kFile;
  if (stat.kind == PathStat::Kind::kFile) stat.size = size_of(field(value, "size"));
  if (stat.kind == PathStat::Kind::kLink) stat.link_target = text_of(field(value, "linkTarget"));
  return stat;
}

Result<PullStep> parse_pull_step(std::string_view line) {
  DROVER_TRY(const auto value, parse_object(line, "The Docker Engine's word about its pull"));
  PullStep step;
  step.layer = text_of(field(value, "id"));
  step.status = text_of(field(value, "status"));
  const auto& detail = field(value, "progressDetail");
  step.current = size_of(field(detail, "current"));
  step.total = size_of(field(detail, "total"));
  step.error = text_of(field(value, "error"));
  if (step.error.empty()) step.error = text_of(field(field(value, "errorDetail"), "message"));
  return step;
}

}  // namespace drover::container::docker
