#include "reads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "base/process.h"
#include "base/spawn.h"
#include "floor.h"

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr std::string_view kJson = "application/json";

struct Question {
  const char* target;
  const char* pointer;                ///< where in the answer the items are, as a JSON pointer
  const char* call = "";              ///< of the v1 API of Mesos, where it is one
  std::string_view language = kJson;  ///< of the answer
};

constexpr Question kQuestions[] = {
    {"/v2/apps", "/apps"},
    {"/v2/apps?embed=apps.tasks", "/apps"},
    {"/v2/tasks", "/tasks"},
    {"/v2/deployments", ""},
    {"/v2/queue", "/queue"},
    {"/v2/groups", "/groups"},
    {"/v1/tasks?active=true&summary=true", "/tasks"},
    {"/v1/tasks", "/tasks"},
    {"/v1/gpus", "/gpus"},
    {"/v1/queues", "/queues"},
    {"/v1/scheduler/jobs", ""},
    {"/v1/scheduler/jobs/summary", "/jobs"},
    {"/state", "/frameworks/0/tasks"},
    {"/tasks?limit=100000", "/tasks"},
    {"/slave(1)/state", "/frameworks/0/executors"},
    {"/containers", ""},
    {"/api/v1", "/get_state/get_tasks/tasks", "GET_STATE"},
    {"/api/v1", "", "GET_STATE", "application/x-protobuf"},
    {"/files/debug", ""},
    {"/metrics/snapshot", ""},
};

int count_items(const Question& question, const std::string& body) {
  if (question.language != kJson) return 0;
  return static_cast<int>(json::parse(body).at(json::json_pointer(question.pointer)).size());
}

void run_program(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ChildDescriptors descriptors;
  descriptors.open("/dev/null", STDOUT_FILENO);
  const auto child = spawn(
      {.program = program, .arguments = words, .environment = minimal_environment(), .own_session = false},
      descriptors);
  int status = 0;
  if (!child || ::waitpid(child->pid, &status, 0) != child->pid || status != 0)
    throw std::runtime_error(fmt::format("'{} {}' failed", program, arguments.back()));
}

}  // namespace

std::vector<Row> time_reads(Subject& subject, Connection& api, int rounds) {
  std::vector<Row> rows;
  for (const auto& question : kQuestions) {
    const std::string call = question.call;
    const auto* method = call.empty() ? "GET" : "POST";
    const auto request = call.empty() ? call : json({{"type", call}}).dump();
    Row row{.what = fmt::format("`{} {}`", method, question.target) + (call.empty() ? "" : ", " + call)};
    if (question.language != kJson) row.what += fmt::format(", {}", question.language);
    const auto ask = [&] {
      return expect_success(api.ask(method, question.target, request, question.language), row.what);
    };
    const auto body = ask().body;
    row.items = count_items(question, body);
    row.bytes = body.size();
    time(subject, row, rounds, [&](int) { ask(); });
    row.floor = time_bare_bytes(std::max<std::size_t>(row.bytes, 1), rounds);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> time_commands(Subject& subject, const std::string& program, int rounds) {
  std::vector<Row> rows;
  for (const auto& words : {std::vector<std::string>{"app", "list"}, {"job", "list"}, {"ps"}}) {
    Row row{.what = fmt::format("`drover {}`, the whole process", fmt::join(words, " "))};
    std::vector<std::string> arguments{"--socket", subject.socket()};
    arguments.insert(arguments.end(), words.begin(), words.end());
    time(subject, row, rounds, [&](int) { run_program(program, arguments); });
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace drover::bench
