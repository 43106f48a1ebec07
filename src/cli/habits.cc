#include "cli/habits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <vector>

#include "base/units.h"

namespace drover::cli {
namespace {

constexpr std::string_view kTasks = "run plan";
constexpr std::string_view kCopies =
    "'--gang N' starts N copies at once; each may have --gpus, --cpus and --mem";
constexpr std::string_view kNoList = "write --state, --user, --queue, --label or --name";
constexpr std::string_view kOneByOne = "leave it out: a plan is of one task, and of now";
constexpr std::string_view kNoSharing = "leave it out: a task's processes and IPC are its own";
constexpr std::string_view kOutput = "the output comes out of 'drover run', and of 'drover logs TASK' later";

constexpr std::array kFlags = {
    // Docker, Podman
    FlagHabit{kTasks, "--memory", Gets::kSame, "--mem"},
    FlagHabit{kTasks, "--net", Gets::kSame, "--network"},
    FlagHabit{kTasks, "--pids-limit", Gets::kSame, "--pids"},
    FlagHabit{kTasks, "--stop-timeout", Gets::kSame, "--grace"},
    FlagHabit{kTasks, "--rm", Gets::kNothing,
              "--rm: the container goes at its end anyway; its output and sandbox stay until 'drover rm'"},
    FlagHabit{kTasks, "--init", Gets::kNothing, "--init: every task has one anyway"},
    FlagHabit{kTasks, "--mount", Gets::kRefusal, "write --volume HOST:CONTAINER, with ':ro' only to read"},
    FlagHabit{kTasks, "--publish-all", Gets::kRefusal, "name each port: --publish PORT"},
    FlagHabit{kTasks, "-P", Gets::kRefusal, "name each port: --publish PORT"},
    FlagHabit{kTasks, "--shm-size", Gets::kNoMatter,
              "--shm-size: a task has all of its --mem as shared memory anyway, at /dev/shm"},
    FlagHabit{kTasks, "--ipc", Gets::kNoMatter,
              "--ipc: a task has all of its --mem as shared memory of its own anyway, at /dev/shm"},
    FlagHabit{kTasks, "--ulimit", Gets::kNoMatter,
              "--ulimit: it changes nothing; a task may lock as much memory as the daemon may"},
    FlagHabit{kTasks, "--pid", Gets::kRefusal, kNoSharing},
    FlagHabit{kTasks, "--userns", Gets::kRefusal, "leave it out: a task has the rights of its user"},
    FlagHabit{kTasks, "--security-opt", Gets::kRefusal, "leave it out: 'drover run' has no weaker isolation"},
    FlagHabit{kTasks, "--group-add", Gets::kRefusal, "leave it out: a task has the groups of its user"},
    FlagHabit{kTasks, "--tmpfs", Gets::kRefusal,
              "write to /dev/shm, which is memory, or to the sandbox, which is a disk"},
    FlagHabit{kTasks, "--cpu-shares", Gets::kRefusal, "write --cpus X: it is a weight, not a limit"},
    FlagHabit{kTasks, "--cidfile", Gets::kRefusal, "'drover run --detach' prints the id"},
    FlagHabit{kTasks, "--memory-swap", Gets::kRefusal, "leave it out: --mem is the limit"},
    FlagHabit{kTasks, "--entrypoint", Gets::kRefusal,
              "write the program as the command, behind the flags: drover run --image REF PROGRAM ARGUMENTS"},
    FlagHabit{kTasks, "--restart", Gets::kRefusal,
              "a task runs once; what is to be kept running is an app: 'drover apply FILE'"},
    FlagHabit{kTasks, "--hostname", Gets::kRefusal,
              "leave it out: it is the machine's, and with --network bridge the head of the task's id"},
    FlagHabit{kTasks, "--cap-add", Gets::kRefusal,
              "leave it out, or write --privileged where the daemon allows it"},
    FlagHabit{kTasks, "--cap-drop", Gets::kRefusal,
              "leave it out: a task of yours has no capabilities unless you are root"},
    FlagHabit{kTasks, "--runtime", Gets::kRefusal, "leave it out: --gpus N brings the driver too"},
    FlagHabit{kTasks, "--cpuset-cpus", Gets::kRefusal,
              "give --cpus X: Drover chooses those that are near the GPUs (--cpu-affinity)"},
    FlagHabit{kTasks, "--platform", Gets::kRefusal,
              "leave it out: of several images that for this machine is taken"},
    FlagHabit{kTasks, "-l", Gets::kRefusal,
              "write --label NAME=VALUE; the lines of a gang have their rank in front anyway"},
    FlagHabit{"logs", "--lines", Gets::kSame, "--tail"},
    FlagHabit{"logs", "--since-time", Gets::kSame, "--since"},
    FlagHabit{"ps", "-A", Gets::kSame, "--all"},
    FlagHabit{"ps", "--filter", Gets::kRefusal, kNoList},
    FlagHabit{"ps", "-f", Gets::kRefusal, kNoList},
    FlagHabit{"ps", "-o", Gets::kSame, "--format"},
    FlagHabit{"ps", "-u", Gets::kSame, "--user"},
    FlagHabit{"ps", "--me", Gets::kRefusal, "leave it out: only root sees the tasks of others"},
    FlagHabit{"rm", "-f", Gets::kRefusal, "end it first: 'drover stop --force TASK'"},
    FlagHabit{"rm", "--force", Gets::kRefusal, "end it first: 'drover stop --force TASK'"},
    FlagHabit{"rm", "-v", Gets::kNothing, ""},
    FlagHabit{"stop", "-f", Gets::kSame, "--force"},
    FlagHabit{"stop", "-t", Gets::kRefusal, "how long a task has is said at its start: run --grace TIME"},
    FlagHabit{"stop", "--time", Gets::kRefusal, "how long a task has is said at its start: run --grace TIME"},
    FlagHabit{"stop", "-s", Gets::kRefusal,
              "a task is sent SIGTERM, and SIGKILL after its grace or by --force"},
    FlagHabit{"stop", "--signal", Gets::kRefusal,
              "a task is sent SIGTERM, and SIGKILL after its grace or by --force"},
    FlagHabit{"exec", "-c", Gets::kRefusal, "leave it out: a task is one container"},
    FlagHabit{"exec", "--container", Gets::kRefusal, "leave it out: a task is one container"},
    FlagHabit{"exec", "-u", Gets::kRefusal, "leave it out: the command runs as the task's user"},
    FlagHabit{"exec", "--user", Gets::kRefusal, "leave it out: the command runs as the task's user"},
    FlagHabit{"exec", "-w", Gets::kRefusal, "write: drover exec TASK -- sh -c 'cd DIR && COMMAND'"},
    FlagHabit{"exec", "--workdir", Gets::kRefusal, "write: drover exec TASK -- sh -c 'cd DIR && COMMAND'"},
    FlagHabit{"exec", "-d", Gets::kRefusal,
              "it would end when you go away: start it as a task with 'drover run --detach'"},
    FlagHabit{"exec", "--detach", Gets::kRefusal,
              "it would end when you go away: start it as a task with 'drover run --detach'"},
    FlagHabit{"", "-v", Gets::kSame, "--version"},
    FlagHabit{"", "-V", Gets::kSame, "--version"},
    FlagHabit{"", "-H", Gets::kSame, "--host"},
    // Slurm
    FlagHabit{kTasks, "--time", Gets::kSame, "--timeout", duration_of_slurm_time},
    FlagHabit{kTasks, "-c", Gets::kSame, "--cpus"},
    FlagHabit{kTasks, "--cpus-per-task", Gets::kSame, "--cpus"},
    FlagHabit{kTasks, "-G", Gets::kSame, "--gpus", gpus_of_slurm_resource},
    FlagHabit{kTasks, "--gres", Gets::kSame, "--gpus", gpus_of_slurm_resource},
    FlagHabit{kTasks, "--gpus-per-node", Gets::kSame, "--gpus", gpus_of_slurm_resource},
    FlagHabit{kTasks, "--gpus-per-task", Gets::kSame, "--gpus", gpus_of_slurm_resource},
    FlagHabit{kTasks, "-J", Gets::kSame, "--name"},
    FlagHabit{kTasks, "--job-name", Gets::kSame, "--name"},
    FlagHabit{kTasks, "--partition", Gets::kSame, "--queue"},
    FlagHabit{kTasks, "-q", Gets::kSame, "--queue"},
    FlagHabit{kTasks, "-D", Gets::kSame, "--workdir"},
    FlagHabit{kTasks, "--chdir", Gets::kSame, "--workdir"},
    FlagHabit{kTasks, "-n", Gets::kRefusal,
              "Slurm's -n is '--gang N', of which each may have --gpus; a namespace is '--namespace NAME'"},
    FlagHabit{kTasks, "--ntasks", Gets::kRefusal, kCopies},
    FlagHabit{kTasks, "--ntasks-per-node", Gets::kRefusal, kCopies},
    FlagHabit{kTasks, "-N", Gets::kRefusal,
              "Slurm's -N is a number of nodes, and this is one machine; '--gang N' starts N copies at once"},
    FlagHabit{kTasks, "--nodes", Gets::kRefusal, "this is one machine; '--gang N' starts N copies at once"},
    FlagHabit{kTasks, "--nodelist", Gets::kRefusal,
              "Drover chooses where; '--constraint NAME=VALUE' says what it needs"},
    FlagHabit{kTasks, "-C", Gets::kRefusal,
              "write --constraint NAME=VALUE: 'drover node' shows what there is"},
    FlagHabit{kTasks, "--account", Gets::kRefusal, "write --namespace NAME: its quota is charged"},
    FlagHabit{kTasks, "-A", Gets::kRefusal, "write --namespace NAME: its quota is charged"},
    FlagHabit{kTasks, "--qos", Gets::kRefusal, "write --queue PATH, or --priority N"},
    FlagHabit{kTasks, "--nice", Gets::kRefusal, "write --priority N, which may be below 0"},
    FlagHabit{kTasks, "--mem-per-cpu", Gets::kRefusal, "write --mem SIZE, for all CPUs together"},
    FlagHabit{kTasks, "--mem-per-gpu", Gets::kRefusal, "write --mem SIZE, for all GPUs together"},
    FlagHabit{kTasks, "--exclusive", Gets::kRefusal, "leave it out: a task's GPUs are its own"},
    FlagHabit{kTasks, "--export", Gets::kRefusal, "give each variable: --env NAME passes on its value here"},
    FlagHabit{kTasks, "-o", Gets::kRefusal, kOutput},
    FlagHabit{kTasks, "--output", Gets::kRefusal, kOutput},
    FlagHabit{kTasks, "--error", Gets::kRefusal, kOutput},
    FlagHabit{kTasks, "--wrap", Gets::kRefusal, "write: drover run -- sh -c 'LINE'"},
    FlagHabit{"run", "--pty", Gets::kRefusal, "a terminal is -it: 'drover run -it bash'"},
    FlagHabit{kTasks, "-a", Gets::kRefusal, "write --array 0-99%10"},
    FlagHabit{kTasks, "--dependency", Gets::kRefusal,
              "write --after TASK, --after TASK:failed or --after TASK:any"},
    FlagHabit{"plan", "--array", Gets::kRefusal, kOneByOne},
    FlagHabit{"plan", "--after", Gets::kRefusal, kOneByOne},
    FlagHabit{"plan", "--begin", Gets::kRefusal, kOneByOne},
    FlagHabit{"plan", "--requeue", Gets::kRefusal, kOneByOne},
    FlagHabit{"plan", "--no-requeue", Gets::kRefusal, kOneByOne},
    FlagHabit{"plan", "--retries", Gets::kRefusal, kOneByOne},
    FlagHabit{kTasks, "--mail-type", Gets::kRefusal,
              "'drover events --follow' tells what happens; a job's file may name a webhook"},
    FlagHabit{kTasks, "--mail-user", Gets::kRefusal,
              "'drover events --follow' tells what happens; a job's file may name a webhook"},
    FlagHabit{kTasks, "--immediate", Gets::kRefusal, "'drover plan' exits with 1 when a task would wait"},
    FlagHabit{kTasks, "-I", Gets::kRefusal, "'drover plan' exits with 1 when a task would wait"},
    FlagHabit{kTasks, "--test-only", Gets::kRefusal, "write 'drover plan' in place of 'drover run'"},
    // Kubernetes, Nomad
    FlagHabit{kTasks, "--dry-run", Gets::kRefusal, "write 'drover plan' in place of 'drover run'"},
    FlagHabit{kTasks, "--labels", Gets::kRefusal, "write --label NAME=VALUE, once for each"},
    FlagHabit{kTasks, "--port", Gets::kSame, "--publish"},
    FlagHabit{kTasks, "--command", Gets::kNothing, ""},
    FlagHabit{kTasks, "--limits", Gets::kRefusal, "write --cpus X --mem SIZE --gpus N"},
    FlagHabit{kTasks, "--requests", Gets::kRefusal, "write --cpus X --mem SIZE --gpus N"},
    FlagHabit{"apply validate", "-f", Gets::kArgument, ""},
    FlagHabit{"apply validate", "--file", Gets::kArgument, ""},
    FlagHabit{"apply validate", "--filename", Gets::kArgument, ""},
    FlagHabit{"apply", "--wait", Gets::kNothing, "--wait: it waits unless --detach is given"},
};

constexpr std::array kVerbs = {
    VerbHabit{"ls", Gets::kSame, "ps"},
    VerbHabit{"tasks", Gets::kSame, "ps"},
    VerbHabit{"kill", Gets::kSame, "stop --force"},
    VerbHabit{"cancel", Gets::kSame, "stop"},
    VerbHabit{"log", Gets::kSame, "logs"},
    VerbHabit{"status", Gets::kRefusal,
              "'drover ps' lists tasks, and 'drover explain TASK' says why one is where it is"},
    VerbHabit{"get", Gets::kRefusal, "'drover ps' lists tasks; 'drover app ls' and 'drover job ls' those"},
    VerbHabit{"task", Gets::kRefusal,
              "tasks need no noun: 'drover ps', 'drover inspect TASK', 'drover rm TASK'"},
    VerbHabit{"container", Gets::kRefusal,
              "a container is a task: 'drover ps', 'drover inspect TASK', 'drover rm TASK'"},
    VerbHabit{"wait", Gets::kRefusal, "'drover attach TASK' ends as the task does, with its status"},
    VerbHabit{
        "cp", Gets::kRefusal,
        "'drover files get TASK PATH' copies out of a sandbox; run --fetch and --volume bring files in"},
    VerbHabit{"port-forward", Gets::kSame, "forward"},
    VerbHabit{
        "scp", Gets::kRefusal,
        "'drover files get TASK PATH' copies out of a sandbox; run --fetch and --volume bring files in"},
    VerbHabit{
        "files cp", Gets::kRefusal,
        "'drover files get TASK PATH' copies out of a sandbox; run --fetch and --volume bring files in"},
    VerbHabit{"files download", Gets::kSame, "get"},
    VerbHabit{"sh", Gets::kRefusal, "'drover exec -it TASK bash' is a shell in a task that runs"},
    VerbHabit{"shell", Gets::kRefusal, "'drover exec -it TASK bash' is a shell in a task that runs"},
    VerbHabit{"ssh", Gets::kRefusal, "'drover exec -it TASK bash' is a shell in a task that runs"},
    VerbHabit{"start", Gets::kRefusal, "a task runs once: start it anew with 'drover run'"},
    VerbHabit{"restart", Gets::kRefusal,
              "a task runs once: start it anew with 'drover run'; an app with 'drover app restart'"},
    VerbHabit{"scale", Gets::kRefusal, "write 'drover app scale APP N'"},
    VerbHabit{"rollback", Gets::kRefusal, "write 'drover app rollback APP'"},
    VerbHabit{"rollout", Gets::kRefusal,
              "'drover apply FILE' rolls out, 'drover app deployments' shows how far it is; 'drover app "
              "rollback APP' goes back"},
    VerbHabit{"history", Gets::kRefusal, "'drover app history APP' and 'drover job history JOB' have it"},
    VerbHabit{"create", Gets::kRefusal, "'drover run' starts a task, 'drover apply FILE' an app or a job"},
    VerbHabit{"up", Gets::kRefusal, "'drover apply FILE' starts apps and jobs, 'drover serve' the daemon"},
    VerbHabit{"daemon", Gets::kRefusal, "'drover serve' runs the daemon"},
    VerbHabit{"agent", Gets::kRefusal, "'drover serve' runs the daemon"},
    VerbHabit{"info", Gets::kRefusal, "'drover node' shows this machine; 'drover doctor' what is missing"},
    VerbHabit{"monitor", Gets::kSame, "events --follow"},
    VerbHabit{"topology", Gets::kSame, "topo"},
    VerbHabit{"gpu", Gets::kSame, "gpus"},
    VerbHabit{"nvidia-smi", Gets::kSame, "gpus"},
    // A noun alone, or in the plural, lists.
    VerbHabit{"apps", Gets::kSame, "app ls"},
    VerbHabit{"jobs", Gets::kSame, "job ls"},
    VerbHabit{"nodes", Gets::kSame, "node"},
    VerbHabit{"queues", Gets::kSame, "queue"},
    VerbHabit{"quotas", Gets::kSame, "quota"},
    VerbHabit{"gpus ls", Gets::kNothing, ""},
    VerbHabit{"node ls", Gets::kNothing, ""},
    VerbHabit{"files rm", Gets::kRefusal,
              "'drover rm TASK' removes the whole sandbox, once the task has ended"},
    VerbHabit{"files inspect", Gets::kRefusal, "'drover files ls TASK PATH' shows what there is"},
    VerbHabit{"files put", Gets::kRefusal, "run --fetch and --volume bring files in"},
    VerbHabit{"cdi rm", Gets::kRefusal, "remove the file that 'drover cdi ls' names"},
    VerbHabit{"cdi inspect", Gets::kRefusal, "'drover cdi' alone prints the specification of this machine"},
    // Images, as Docker has them
    VerbHabit{"images", Gets::kSame, "image ls"},
    VerbHabit{"pull", Gets::kSame, "image pull"},
    VerbHabit{"rmi", Gets::kSame, "image rm"},
    VerbHabit{"load", Gets::kSame, "image load"},
    VerbHabit{"prune", Gets::kRefusal,
              "'drover image prune' frees images; 'drover rm TASK' a task's sandbox"},
    VerbHabit{"build", Gets::kRefusal,
              "build it with another tool; 'drover image load' or a registry brings it"},
    VerbHabit{"push", Gets::kRefusal, "Drover only pulls: push it with the tool that built it"},
    VerbHabit{"image build", Gets::kRefusal,
              "build it with another tool; 'drover image load' or a registry brings it"},
    VerbHabit{"image push", Gets::kRefusal, "Drover only pulls: push it with the tool that built it"},
    VerbHabit{"image tag", Gets::kRefusal, "'drover image load REF NAME' gives an image a name"},
    // Slurm
    VerbHabit{"srun", Gets::kSame, "run"},
    VerbHabit{"scancel", Gets::kSame, "stop"},
    VerbHabit{"squeue", Gets::kSame, "ps"},
    VerbHabit{"sacct", Gets::kSame, "ps --all"},
    VerbHabit{"sinfo", Gets::kSame, "node"},
    VerbHabit{"sbatch", Gets::kSame, "submit"},
    VerbHabit{"salloc", Gets::kRefusal,
              "a task holds the GPUs: 'drover run --detach --gpus N -- sleep 1h', then 'drover exec -it TASK "
              "bash'"},
    VerbHabit{"alloc", Gets::kRefusal,
              "a task holds the GPUs: 'drover run --detach --gpus N -- sleep 1h', then 'drover exec -it TASK "
              "bash'"},
    VerbHabit{"scontrol", Gets::kRefusal, "'drover inspect TASK' shows a task, 'drover node' the machine"},
    VerbHabit{"sstat", Gets::kRefusal, "'drover stats TASK' shows what a task uses, and used over its life"},
    VerbHabit{"dispatch", Gets::kRefusal, "'drover job run JOB --arguments TEXT' starts a job now"},
};

/// Of the verbs that every noun has: Drover's own, and what else it is called.
struct CommonVerb {
  std::string_view own;
  std::string_view others;
};
constexpr std::array kCommonVerbs = {CommonVerb{"ls", "ls list"}, CommonVerb{"rm", "rm remove delete"},
                                     CommonVerb{"inspect", "inspect show describe"}};

/// Whether `word` is one of `words`, between which are spaces.
bool is_among(std::string_view word, std::string_view words) {
  for (std::size_t begin = 0; begin <= words.size();) {
    const auto end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Digits, and few enough of them for sums not to overflow.
std::optional<std::int64_t> small_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value <= 1'000'000'000 ? std::optional(value) : std::nullopt;
}

/// Seconds of "[DAYS-]…"; nullopt when it is not of this form.
std::optional<std::int64_t> seconds_of(std::string_view text) {
  std::int64_t days = 0;
  const auto dash = text.find('-');
  const bool with_days = dash != std::string_view::npos;
  if (with_days) {
    const auto number = small_number(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text = text.substr(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const auto part : split(text, ':')) {
    const auto number = small_number(part);
    if (!number) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() > 3) return std::nullopt;
  // What the numbers count: behind days from hours on, else minutes, minutes and seconds, or all three.
  if (!with_days && parts.size() < 3) parts.insert(parts.begin(), 0);
  parts.resize(3, 0);
  return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
}

bool is_image_character(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0 ||
         std::isdigit(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("._-/:@").find(c) != std::string_view::npos;
}

}  // namespace

std::span<const FlagHabit> flag_habits() {
  return kFlags;
}

std::span<const VerbHabit> verb_habits() {
  return kVerbs;
}

const FlagHabit* find_flag_habit(std::string_view command, std::string_view flag) {
  const auto found = std::ranges::find_if(
      kFlags, [&](const auto& habit) { return habit.flag == flag && is_among(command, habit.commands); });
  return found == kFlags.end() ? nullptr : &*found;
}

const VerbHabit* find_verb_habit(std::string_view words) {
  const auto found = std::ranges::find(kVerbs, words, &VerbHabit::words);
  return found == kVerbs.end() ? nullptr : &*found;
}

std::string_view common_verb(std::string_view word) {
  for (const auto& verb : kCommonVerbs)
    if (is_among(word, verb.others)) return verb.own;
  return "";
}

Result<std::string> duration_of_slurm_time(std::string_view text) {
  // Drover's own form has a unit, and is what it is.
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.back())) != 0) return std::string(text);
  const auto seconds = seconds_of(text);
  if (!seconds)
    return fail(ErrorKind::kInvalid, fmt::format("--time: '{}' is not a time", text),
                "write for example --time 90 for so many minutes, --time 1:30:00, or --timeout 90m");
  return exact_duration(std::chrono::seconds(*seconds));
}

Result<std::string> gpus_of_slurm_resource(std::string_view text) {
  auto parts = split(text, ':');
  if (parts.front() == "gpu") parts.erase(parts.begin());
  if (parts.empty()) return std::string("1");
  if (parts.size() == 1) return std::string(parts.front());
  if (parts.size() == 2 && small_number(parts.back()))
    return fmt::format("{}x{}", parts.back(), parts.front());
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a number of GPUs", text),
              "write for example --gpus 2, or --gpus 2xA100");
}

bool looks_like_image(std::string_view word) {
  return !word.empty() && std::isalnum(static_cast<unsigned char>(word.front())) != 0 &&
         std::ranges::all_of(word, is_image_character);
}

}  // namespace drover::cli
