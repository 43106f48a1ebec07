#include "cli/task_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/units.h"
#include "cli/flags.h"
#include "cli/habits.h"
#include "cli/line.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// A flag whose value goes into a field of the request as it is.
struct TextFlag {
  const char* field;
  const char* flag;
  std::string TaskFlags::* value;
};
constexpr std::array kTextFlags = {
    TextFlag{"container_type", "--containerizer", &TaskFlags::containerizer},
    TextFlag{"driver", "--driver", &TaskFlags::driver},
    TextFlag{"user", "--user", &TaskFlags::user},
    TextFlag{"pull", "--pull", &TaskFlags::pull},
    TextFlag{"working_directory", "--workdir", &TaskFlags::working_directory},
    TextFlag{"name", "--name", &TaskFlags::name},
    TextFlag{"gpu_memory", "--gpu-mem", &TaskFlags::gpu_memory},
    TextFlag{"gpu_compute_capability", "--gpu-cc", &TaskFlags::gpu_compute_capability},
    TextFlag{"gpu_driver", "--gpu-driver", &TaskFlags::gpu_driver},
    TextFlag{"share_by", "--share-by", &TaskFlags::share_by},
    TextFlag{"interconnect", "--interconnect", &TaskFlags::interconnect},
    TextFlag{"cpu_affinity", "--cpu-affinity", &TaskFlags::cpu_affinity},
    TextFlag{"nic", "--nic", &TaskFlags::nic},
    TextFlag{"group", "--group", &TaskFlags::group},
    TextFlag{"queue", "--queue", &TaskFlags::queue},
    TextFlag{"namespace", "--namespace", &TaskFlags::name_space},
};

/// Where else the daemon may find a mistake, longer paths before shorter ones.
constexpr std::array<std::pair<std::string_view, std::string_view>, 30> kOtherPaths = {{
    {"/gang/arrangement", "--arrangement"},
    {"/gang", "--gang"},
    {"/array", "--array"},
    {"/after", "--after"},
    {"/begin", "--begin"},
    {"/retries", "--retries"},
    {"/requeue", "--requeue"},
    {"/gpus", "--gpus"},
    {"/cpus", "--cpus"},
    {"/memory", "--mem"},
    {"/pids", "--pids"},
    {"/gpu_model", "--gpu-model"},
    {"/gpu_ecc", "--gpu-ecc"},
    {"/gpu_share", "--gpu-share"},
    {"/gpu_part", "--gpu-part"},
    {"/different_models", "--different-gpus"},
    {"/constraints", "--constraint"},
    {"/priority", "--priority"},
    {"/image", "--image"},
    {"/privileged", "--privileged"},
    {"/env", "--env"},
    {"/labels", "--label"},
    {"/timeout", "--timeout"},
    {"/pull_timeout", "--pull-timeout"},
    {"/idle_timeout", "--idle-timeout"},
    {"/fetch", "--fetch"},
    {"/volumes", "--volume"},
    {"/devices", "--device"},
    {"/network/ports", "--publish"},
    {"/network", "--network"},
}};

/// What the daemon calls by the names of fields, in flags.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kFieldWords = {{
    {"gpu_compute_capability", "--gpu-cc"},
    {"gpu_memory", "--gpu-mem"},
    {"gpu_driver", "--gpu-driver"},
    {"gpu_model", "--gpu-model"},
    {"gpu_share", "--gpu-share"},
    {"share_by", "--share-by"},
    {"gpu_part", "--gpu-part"},
    {"gpu_ecc", "--gpu-ecc"},
    {"different_models", "--different-gpus"},
    {"working_directory", "--workdir"},
    {"container_type", "--containerizer"},
    {"container_path", "path in the container"},
    {"container_port", "port in the container"},
    {"host_path", "path on the machine"},
    {"host_port", "port of the machine"},
    {"cpu_affinity", "--cpu-affinity"},
    {"max_priority", "highest priority"},
    {"read_only", "--read-only"},
}};

/// The flag that a path ("/gpus/0/count") is about; "" when it is none.
std::string flag_of_path(std::string_view path) {
  const auto begins = [&](std::string_view field) {
    return path.starts_with(field) && (path.size() == field.size() || path[field.size()] == '/');
  };
  for (const auto& [field, flag] : kOtherPaths)
    if (begins(field)) return std::string(flag);
  for (const auto& text : kTextFlags)
    if (begins(fmt::format("/{}", text.field))) return text.flag;
  return "";
}

/// Digits with or without a point: "0.5"; neither "nan" nor "1e9".
std::optional<double> decimal(std::string_view text) {
  double value = 0;
  const auto* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, std::chars_format::fixed);
  if (error != std::errc() || end != last || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "2xA100": so many of a model.
std::optional<json> parse_claim(std::string_view text) {
  const auto mark = text.find('x');
  if (mark == std::string_view::npos || mark + 1 == text.size()) return std::nullopt;
  const auto count = whole_number(text.substr(0, mark));
  if (!count) return std::nullopt;
  return json{{"count", *count}, {"model", text.substr(mark + 1)}};
}

/// "2", "0.5" or "2xA100,1xT4", as the API has it.
Result<json> parse_gpus(const std::string& text) {
  const auto bad = [&] {
    if (text == "all")
      return bad_value("--gpus", text, "a number of GPUs",
                       "others may want some: say how many; 'drover gpus' lists those that there are");
    if (text.starts_with("device=") || text.starts_with("\"device="))
      return bad_value("--gpus", text, "a number of GPUs",
                       "Drover chooses them: say how many, and with --gpu-model of which kind");
    return bad_value("--gpus", text, "a number of GPUs",
                     "write for example --gpus 2, --gpus 0.5 or --gpus 2xA100,1xT4");
  };
  if (const auto count = whole_number(text)) {
    if (*count < 0) return bad();
    return json(*count);
  }
  if (const auto number = decimal(text)) {
    if (*number < 0) return bad();
    return json(*number);
  }
  json claims = json::array();
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    auto claim = parse_claim(std::string_view(text).substr(begin, end - begin));
    if (!claim) return bad();
    claims.push_back(std::move(*claim));
    begin = end + 1;
  }
  return claims;
}

/// "K=V"; with `inherit`, "K" alone stands for this process's own value.
Result<json> parse_pairs(const std::vector<std::string>& pairs, std::string_view flag, bool inherit) {
  json result = json::object();
  for (const auto& pair : pairs) {
    const auto equals = pair.find('=');
    const auto name = pair.substr(0, equals);
    const char* own = equals == std::string::npos && inherit ? std::getenv(name.c_str()) : nullptr;
    if (name.empty() || (equals == std::string::npos && !inherit))
      return fail(ErrorKind::kInvalid, fmt::format("{}: '{}' is not of the form NAME=VALUE", flag, pair));
    if (equals != std::string::npos)
      result[name] = pair.substr(equals + 1);
    else if (own != nullptr)
      result[name] = own;
  }
  return result;
}

/// Variables out of files as Docker has them: a line each, as in --env; empty ones and those with '#' are
/// none.
Result<json> read_variables(const std::vector<std::string>& files) {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::vector<std::string> lines;
  for (const auto& file : files) {
    DROVER_TRY(const auto text, of_flag(read_file(file, kMostBytes), "--env-file"));
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      auto line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty() && line.front() != '#') lines.push_back(std::move(line));
      begin = end + 1;
    }
  }
  return parse_pairs(lines, "--env-file", true);
}

/// NAME=VALUE; a name that is given again adds a value that will do too.
Result<json> parse_constraints(const std::vector<std::string>& pairs) {
  json result = json::object();
  for (const auto& pair : pairs) {
    DROVER_TRY(const auto parsed, parse_pairs({pair}, "--constraint", false));
    for (const auto& [name, value] : parsed.items()) result[name].push_back(value);
  }
  return result;
}

/// Slurm counts in MB where there is no unit: 2048 bytes are what nobody means.
Result<std::uint64_t> parse_memory(const std::string& text) {
  constexpr std::int64_t kFewBytes = 4LL << 20;  // less than any task may have
  if (const auto bytes = whole_number(text); bytes && *bytes > 0 && *bytes < kFewBytes)
    return fail(ErrorKind::kInvalid, fmt::format("--mem: '{}' are so many bytes, which is too little", text),
                fmt::format("for so many MiB, as Slurm counts, write --mem {}M", text));
  return of_flag(parse_bytes(text), "--mem");
}

/// Hours, minutes and seconds with colons, as Slurm has them, are told in Drover's words.
Status parse_time_limit(const std::string& text) {
  auto parsed = parse_duration(text);
  if (parsed) return {};
  if (const auto meant = duration_of_slurm_time(text);
      meant && (std::ranges::count(text, ':') == 2 || text.find('-') != std::string::npos))
    parsed.error().hint = fmt::format("write it as {}", *meant);
  return Failure(parsed.error());
}

Status add_sizes(const TaskFlags& flags, json& body) {
  if (!flags.cpus.empty()) {
    DROVER_TRY(const auto milli_cpus, of_flag(parse_milli_cpus(flags.cpus), "--cpus"));
    body["cpus"] = static_cast<double>(milli_cpus) / 1000;
  }
  if (!flags.memory.empty()) {
    DROVER_TRY(body["memory"], parse_memory(flags.memory));
  }
  if (!flags.processes.empty()) {
    DROVER_TRY(body["pids"], parse_whole(flags.processes, "--pids"));
  }
  const std::array<std::tuple<const char*, const char*, const std::string*>, 4> durations = {
      {{"timeout", "--timeout", &flags.timeout},
       {"idle_timeout", "--idle-timeout", &flags.idle_timeout},
       {"pull_timeout", "--pull-timeout", &flags.pull_timeout},
       {"grace", "--grace", &flags.grace}}};
  for (const auto& [name, flag, text] : durations) {
    if (text->empty()) continue;
    DROVER_CHECK_OK(of_flag(parse_time_limit(*text), flag));
    body[name] = *text;
  }
  return {};
}

/// What the GPUs must be like, once for all of them: said of one kind of GPU or of each kind in --gpus.
Status spread_over_claims(json& body) {
  if (!body.contains("gpus") || !body["gpus"].is_array()) return {};
  if (body.contains("gpu_model"))
    return fail(ErrorKind::kInvalid, "--gpu-model: the models are named twice, here and in --gpus",
                "name them in one of the two");
  const std::array<std::pair<const char*, const char*>, 4> filters = {
      {{"gpu_memory", "memory"},
       {"gpu_compute_capability", "compute_capability"},
       {"gpu_ecc", "ecc"},
       {"gpu_driver", "driver"}}};
  for (const auto& [shorthand, field] : filters) {
    if (!body.contains(shorthand)) continue;
    for (auto& claim : body["gpus"]) claim[field] = body[shorthand];
    body.erase(shorthand);
  }
  return {};
}

Status add_gpus(const TaskFlags& flags, json& body) {
  if (!flags.gpus.empty()) {
    DROVER_TRY(body["gpus"], parse_gpus(flags.gpus));
  }
  if (!flags.gpu_models.empty()) body["gpu_model"] = flags.gpu_models;
  if (!flags.gpu_ecc.empty()) {
    if (flags.gpu_ecc != "on" && flags.gpu_ecc != "off")
      return bad_value("--gpu-ecc", flags.gpu_ecc, "'on' or 'off'", "");
    body["gpu_ecc"] = flags.gpu_ecc == "on";
  }
  if (!flags.gpu_share.empty()) body["gpu_share"] = share_of_flag(flags.gpu_share);
  if (!flags.gpu_part.empty()) body["gpu_part"] = flags.gpu_part;
  if (flags.different_gpus) body["different_models"] = true;
  return spread_over_claims(body);
}

Status add_order(const TaskFlags& flags, json& body) {
  if (!flags.gang.empty()) {
    DROVER_TRY(body["gang"]["size"], parse_whole(flags.gang, "--gang"));
  }
  if (!flags.arrangement.empty()) {
    if (flags.gang.empty())
      return fail(ErrorKind::kInvalid, "--arrangement: only a gang has members to arrange", "add --gang N");
    body["gang"]["arrangement"] = flags.arrangement;
  }
  if (!flags.priority.empty()) {
    DROVER_TRY(body["priority"], parse_whole(flags.priority, "--priority"));
  }
  return {};
}

// What there is to say about the flags

void add_gpu_flags(CLI::App& command, TaskFlags& flags) {
  const auto group = [](CLI::Option* option) { option->group("Which GPUs"); };
  group(add_text(command, "--gpus", flags.gpus, "N", "How many: 2, a part: 0.5, or kinds: 2xA100,1xT4"));
  group(add_list(command, "--gpu-model", flags.gpu_models, "MODEL", "Of this model; again: or of that one"));
  group(add_text(command, "--gpu-mem", flags.gpu_memory, "SIZE", "With at least this memory: 40GiB"));
  group(add_text(command, "--gpu-cc", flags.gpu_compute_capability, "X.Y",
                 "With at least this compute capability"));
  group(add_text(command, "--gpu-ecc", flags.gpu_ecc, "on|off", "With ECC on, or off"));
  group(add_text(command, "--gpu-driver", flags.gpu_driver, "VERSION", "With at least this driver: 535.104"));
  group(add_text(command, "--gpu-share", flags.gpu_share, "PART", "So much of each GPU: 0.5 or 8GiB"));
  group(add_text(command, "--share-by", flags.share_by, "auto|mig|kernel|mps|limits|none",
                 "What holds it to that; auto when not given. mps: the group shares by NVIDIA's MPS"));
  group(add_text(command, "--gpu-part", flags.gpu_part, "PROFILE",
                 "Instead of each GPU a MIG instance: 1g.10gb"));
  group(command.add_flag("--different-gpus", flags.different_gpus, "No two of one model"));
  group(add_text(command, "--interconnect", flags.interconnect,
                 "nvlink:N|nvlink|switch|switches|bridge|node|any",
                 "Each pair at least so near; any when not given"));
  group(add_text(command, "--group", flags.group, "NAME", "Share one set of GPUs with tasks of this group"));
}

void add_place_flags(CLI::App& command, TaskFlags& flags) {
  const auto group = [](CLI::Option* option) { option->group("Where and when"); };
  group(add_text(command, "--cpu-affinity", flags.cpu_affinity, "prefer|require|none",
                 "CPUs near the GPUs; prefer when not given"));
  group(add_text(command, "--nic", flags.nic, "none|prefer|require",
                 "A network card near the GPUs; none when not given"));
  group(add_list(command, "--constraint", flags.constraints, "NAME=VALUE",
                 "Only where the node has this attribute"));
  group(add_text(command, "--gang", flags.gang, "N", "N copies that start all at once or not at all"));
  group(add_text(command, "--arrangement", flags.arrangement, "pack|spread|any",
                 "Of a gang over nodes; any when not given"));
  group(add_text(command, "--queue", flags.queue, "QUEUE",
                 "The queue that it stands in; default when not given"));
  group(add_text(command, "--namespace", flags.name_space, "NAME", "Whose quota it counts against"));
  group(add_text(command, "--priority", flags.priority, "N", "Higher goes first; 0 when not given"));
}

void add_attachment_flags(CLI::App& command, AttachmentFlags& flags) {
  const auto group = [](CLI::Option* option) { option->group("What is brought to it"); };
  group(
      add_list(command, "--fetch", flags.fetch, "URI", "Bring this file into its sandbox; unpack archives"));
  group(add_list(command, "--volume,-v", flags.volumes, "HOST:CONTAINER",
                 "Show it this folder or file of the machine; with ':ro', only to read"));
  group(add_list(command, "--device", flags.devices, "NAME",
                 "Give it this CDI device of another vendor: vendor.com/class=name"));
  group(add_text(command, "--network", flags.network, "host|bridge",
                 "The machine's, or one of its own; host when not given, unless the daemon says otherwise"));
  group(add_list(command, "--publish,-p", flags.published, "[HOST:]PORT",
                 "Reach this port of its own network on the machine; '/udp' behind it"));
}

}  // namespace

std::string absolute_image(const std::string& reference) {
  for (const std::string_view scheme :
       {"oci:", "oci-archive:", "docker-archive:", "rootfs:", "dir:", "variants:"})
    if (reference.starts_with(scheme))
      return std::string(scheme) +
             std::filesystem::absolute(reference.substr(scheme.size())).lexically_normal().string();
  // A word that is no file here may be the name of an image in a registry: the daemon says what it makes of
  // it.
  std::error_code too_long;
  const bool is_path = reference.starts_with('/') || reference.starts_with('.') ||
                       std::filesystem::exists(reference.substr(0, reference.find(':')), too_long);
  return is_path ? std::filesystem::absolute(reference).lexically_normal().string() : reference;
}

void add_task_flags(CLI::App& command, TaskFlags& flags) {
  add_gpu_flags(command, flags);
  add_place_flags(command, flags);
  add_attachment_flags(command, flags.attachments);
  add_text(command, "--cpus", flags.cpus, "X",
           "CPUs, also in parts: 0.5; else its GPUs' part of the machine, or 1");
  add_text(command, "--mem,-m", flags.memory, "SIZE",
           "Memory limit: 512M, 16GiB; else its GPUs' part of the machine, or 1GiB");
  add_text(command, "--pids", flags.processes, "N",
           "Most processes and threads at once; 4096 when not given");
  add_text(command, "--image", flags.image, "REF",
           "A name as registries have it, oci:LAYOUT[:TAG], docker-archive:FILE, rootfs:FOLDER, "
           "variants:LIST or a path");
  add_text(command, "--pull", flags.pull, "missing|always|never",
           "When to ask the registry; when the image is missing, when not given");
  add_text(command, "--driver", flags.driver, "host|none",
           "The driver's programs and libraries: the machine's, as when not given, or only the image's own");
  add_list(command, "--env,-e", flags.environment, "NAME=VALUE",
           "Set a variable; NAME alone passes on its value here");
  add_list(command, "--env-file", flags.environment_files, "FILE",
           "Set the variables of a file, a line each as with --env, which goes before it");
  add_text(command, "--user,-u", flags.user, "USER",
           "Whom it runs as: you, when not given; only root may name another user");
  add_text(command, "--workdir,-w", flags.working_directory, "DIR",
           "Folder in which it starts; else yours, or the image's");
  command.add_flag("--read-only", flags.read_only, "Make the root file system read-only");
  add_text(command, "--containerizer", flags.containerizer, "oci|docker",
           "Who runs it, where the daemon has both")
      ->check(one_of({"oci", "docker", "mesos"}));
  command.add_flag("--privileged", flags.privileged,
                   "See every device of the machine; only where the daemon allows it");
  add_text(command, "--name", flags.name, "NAME", "A name for people");
  add_text(command, "--timeout", flags.timeout, "TIME",
           "Stop it after this time: 90s, 2h; never when not given");
  add_text(command, "--idle-timeout", flags.idle_timeout, "TIME",
           "Stop it when its GPUs did nothing for so long: 30m; never when not given");
  add_text(command, "--pull-timeout", flags.pull_timeout, "TIME",
           "Give it up when its image is not there after this time");
  add_text(command, "--grace", flags.grace, "TIME", "Time between asking it to stop and killing it");
  add_list(command, "--label", flags.labels, "NAME=VALUE", "Attach a label");
  command.add_option("command")
      ->description("What to run: all from its first word on, or behind '--'")
      ->type_name(kCommandType);
}

std::vector<std::string> unset_variables(const TaskFlags& flags) {
  std::vector<std::string> names;
  for (const auto& pair : flags.environment)
    if (!pair.empty() && pair.find('=') == std::string::npos && std::getenv(pair.c_str()) == nullptr)
      names.push_back(pair);
  return names;
}

Result<json> task_request(const TaskFlags& flags, const std::vector<std::string>& command) {
  json body = json::object();
  DROVER_CHECK_OK(add_sizes(flags, body));
  for (const auto& text : kTextFlags)
    if (!(flags.*text.value).empty()) body[text.field] = flags.*text.value;
  DROVER_CHECK_OK(add_gpus(flags, body));
  DROVER_CHECK_OK(add_order(flags, body));
  DROVER_TRY(body["env"], read_variables(flags.environment_files));
  DROVER_TRY(const auto variables, parse_pairs(flags.environment, "--env", true));
  body["env"].update(variables);
  DROVER_TRY(body["labels"], parse_pairs(flags.labels, "--label", false));
  DROVER_TRY(auto constraints, parse_constraints(flags.constraints));
  if (!constraints.empty()) body["constraints"] = std::move(constraints);
  if (!command.empty()) body["command"] = command;
  if (!flags.image.empty()) body["image"] = absolute_image(flags.image);
  if (flags.read_only) body["read_only"] = true;
  if (flags.privileged) body["privileged"] = true;
  DROVER_CHECK_OK(add_attachments(flags.attachments, body));
  return body;
}

/// The names of fields that stand alone; somebody's own words may look like them, and stand in quotes or
/// paths.
std::string with_flags(std::string text) {
  for (const auto& [field, words] : kFieldWords)
    for (auto at = text.find(field); at != std::string::npos; at = text.find(field, at + 1)) {
      const auto end = at + field.size();
      const bool begins = at == 0 || text[at - 1] == ' ';
      const bool ends =
          end == text.size() || std::string_view(" ,;:.)").find(text[end]) != std::string_view::npos;
      if (begins && ends) text.replace(at, field.size(), words);
    }
  return text;
}

json share_of_flag(const std::string& text) {
  const auto part = decimal(text);
  return part ? json(*part) : json(text);
}

Error in_flags(Error error) {
  constexpr std::string_view kWhole = "The task: ";  // what the flag says better
  if (const auto flag = flag_of_path(error.path); !flag.empty()) {
    error.path = flag;
    if (error.message.starts_with(kWhole)) error.message.erase(0, kWhole.size());
  }
  // Several mistakes stand in the message, a line each: "  /gpus: …".
  std::string message;
  for (std::size_t begin = 0; begin < error.message.size();) {
    const auto end = std::min(error.message.find('\n', begin), error.message.size() - 1) + 1;
    auto line = error.message.substr(begin, end - begin);
    if (const auto colon = line.find(": "); line.starts_with("  /") && colon != std::string::npos)
      if (const auto flag = flag_of_path(std::string_view(line).substr(2, colon - 2)); !flag.empty())
        line = "  " + flag + line.substr(colon);
    message += line;
    begin = end;
  }
  error.message = with_flags(std::move(message));
  error.hint = with_flags(std::move(error.hint));
  return error;
}

}  // namespace drover::cli
