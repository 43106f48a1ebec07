#include "cli/definitions/definition.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "cli/definitions/examples.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr TimePoint kNow{std::chrono::hours(24 * 365 * 55)};

Definitions read(std::string_view text, const std::string& file = "f.yaml") {
  return read_definitions(file, "/srv/project", text, kNow);
}

std::string rendered(const Definitions& definitions) {
  std::string text;
  for (const auto& finding : definitions.findings) text += render(finding);
  return text;
}

TEST(DefinitionTest, RealDefinitionsAreRightAsTheyAre) {
  const std::filesystem::path folder = DROVER_SOURCE_DIR "/tests/data/definitions";
  std::map<std::string, int> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto read = read_definitions(entry.path(), folder, read_file(entry.path()).value(), kNow);
    EXPECT_EQ(rendered(read), "") << entry.path();
    for (const auto& each : read.all) ++kinds[std::string(kind_word(each.kind)) + " " + each.name];
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"app /tensorflow-app", 1},
                                               {"app /tensorflow-gpus", 2},
                                               {"job test-gpu", 1},
                                               {"job test2-gpu", 1}}));
}

std::string warned(const Definitions& definitions) {
  std::string text;
  for (const auto& warning : definitions.warnings) text += render_warning(warning);
  return text;
}

TEST(DefinitionTest, RealDefinitionsHaveNoFieldThatNobodyKnows) {
  const std::filesystem::path folder = DROVER_SOURCE_DIR "/tests/data/definitions";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_EQ(warned(read_definitions(entry.path(), folder, read_file(entry.path()).value(), kNow)), "");
}

TEST(DefinitionTest, WarnsOfFieldsThatNobodyKnowsWhereTheyStand) {
  const auto app = read("id: a\ncmd: x\ninstnces: 3\nhealthChecks:\n  - {protocol: TCP, prt: 8}\n");
  EXPECT_EQ(rendered(app), "");
  ASSERT_EQ(app.all.size(), 1u);
  EXPECT_EQ(app.all[0].warnings, 2u);
  EXPECT_EQ(warned(app),
            "f.yaml:3:1: warning: /instnces: unknown field 'instnces'\n"
            "  instnces: 3\n"
            "  ^\n"
            "  did you mean 'instances'?\n"
            "f.yaml:5:21: warning: /healthChecks/0/prt: unknown field 'prt'\n"
            "    - {protocol: TCP, prt: 8}\n"
            "                      ^\n"
            "  did you mean 'port'?\n");
  const auto job = read("- name: j\n  command: x\n  parents: [a]\n  gpu: 2\n");
  EXPECT_THAT(warned(job), HasSubstr("f.yaml:4:3: warning: (0)/gpu: unknown field 'gpu'"));
  EXPECT_THAT(warned(job), HasSubstr("did you mean 'gpus'?"));
  const auto group = read("{id: g, apps: [{id: a, cmd: x, gpu: 1, tasksRunning: 1, residency: {}}]}");
  EXPECT_THAT(warned(group), HasSubstr("/apps/0/gpu"));
  EXPECT_EQ(group.warnings.size(), 1u) << "what Marathon knows and Drover ignores is known";
}

TEST(DefinitionTest, StrictlyTakenWarningsAreMistakes) {
  auto read_strictly = read("id: a\ncmd: x\ninstnces: 3\ncpus: no\n");
  read_strictly.be_strict();
  ASSERT_EQ(read_strictly.findings.size(), 2u);
  EXPECT_EQ(read_strictly.findings[0].mistake.path, "/instnces") << "in the order of the text";
  EXPECT_TRUE(read_strictly.warnings.empty());
}

TEST(DefinitionTest, KindsCanBeSaid) {
  const auto found = read(
      "{kind: app, id: web, cmd: x}\n---\n{kind: group, id: shop, apps: []}\n---\n"
      "{kind: job, name: n, command: x, schedule: R/2030-01-31T02:30:00Z/P1D}\n---\n"
      "{kind: job, name: m, command: x, parents: [n]}\n---\n"
      "{kind: task, command: [/bin/x], mem: 4GiB, gpus: 0.5, timeout: 1h}\n---\n"
      "{kind: gang, command: [y], gang: {members: [{mem: 1GiB}, {memory: 2GiB}]}}\n---\n"
      "{kind: task, command: [x]}\n");
  EXPECT_EQ(rendered(found), "");
  EXPECT_EQ(warned(found), "");
  std::vector<std::string> kinds;
  for (const auto& each : found.all) {
    kinds.push_back(fmt::format("{} {}", kind_word(each.kind), each.name));
    EXPECT_FALSE(each.value.contains("kind")) << "the API knows none";
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"app /web", "group /shop", "job n", "job m", "task x", "gang y",
                                             "task x"}));
  EXPECT_EQ(found.all[3].kind, DefinitionKind::kDependentJob);
  EXPECT_EQ(found.all[4].value,
            nlohmann::json({{"command", {"/bin/x"}}, {"memory", "4GiB"}, {"gpus", 0.5}, {"timeout", "1h"}}));
  EXPECT_EQ(found.all[5].value["gang"]["members"][0], nlohmann::json({{"memory", "1GiB"}}));
}

TEST(DefinitionTest, KindsThatThereAreNot) {
  EXPECT_EQ(rendered(read("kind: tsk\ncommand: [x]\n")),
            "f.yaml:1:7: /kind: there is no kind 'tsk' of definition\n"
            "  kind: tsk\n"
            "        ^\n"
            "  did you mean 'task'? it is one of app, group, job, task, gang, queue, quota\n");
  EXPECT_THAT(rendered(read("{kind: gang, command: [x]}")), HasSubstr("a gang has the field 'gang'"));
  EXPECT_THAT(rendered(read("{kind: 7, command: [x]}")), HasSubstr("no kind '7'"));
}

TEST(DefinitionTest, PathsOfATaskAreMeantFromItsFile) {
  const auto of_first = [](const std::string& text) {
    const auto found = read(text);
    EXPECT_EQ(rendered(found), "");
    return found.all.empty() ? json() : found.all.front().value;
  };
  const auto task = of_first(
      "kind: task\ncommand: [x]\nworking_directory: ./src/\nfetch: [data.tgz, 'https://h/x', "
      "/srv/y]\nvolumes:\n"
      "  - {host_path: ../data, container_path: data}\n  - {host_path: /data, container_path: /d}\n");
  EXPECT_EQ(task["working_directory"], "/srv/project/src");
  EXPECT_EQ(task["fetch"], json({"/srv/project/data.tgz", "https://h/x", "/srv/y"}));
  EXPECT_EQ(task["volumes"][0]["host_path"], "/srv/data");
  EXPECT_EQ(task["volumes"][0]["container_path"], "data");
  EXPECT_EQ(task["volumes"][1]["host_path"], "/data");
  const auto gang = of_first("{kind: task, command: [x], gang: {members: [{fetch: [{uri: a}]}, {}]}}");
  EXPECT_EQ(gang["gang"]["members"][0]["fetch"][0]["uri"], "/srv/project/a");
  EXPECT_THAT(rendered(read("{kind: task, image: i, working_directory: src}")),
              HasSubstr("not an absolute path"))
      << "it is one of the image's";
}

TEST(DefinitionTest, MistakesOfTasksStandWhereTheyAre) {
  EXPECT_EQ(rendered(read("kind: task\ncommand: [x]\nmem: lots\nenv: {A: 1}\ngpu: 2\n")),
            "f.yaml:3:6: /mem: 'lots' is not a size\n"
            "  mem: lots\n"
            "       ^\n"
            "  write for example 512M or 16GiB\n"
            "f.yaml:4:10: /env/A: expected a string, found number\n"
            "  env: {A: 1}\n"
            "           ^\n"
            "  write it in quotes: \"1\"\n"
            "f.yaml:5:1: /gpu: unknown field 'gpu'\n"
            "  gpu: 2\n"
            "  ^\n"
            "  did you mean 'gpus'?\n");
  EXPECT_THAT(rendered(read("{kind: task}")), HasSubstr("give it a 'command'"));
  EXPECT_THAT(rendered(read("{kind: task, command: python3 x.py}")),
              HasSubstr("write it word by word: [python3, train.py]"));
  EXPECT_THAT(rendered(read("{kind: task, command: [x], mem: 2048}")),
              HasSubstr("for so many MiB write 2048MiB"));
  EXPECT_THAT(rendered(read("{kind: task, command: [x], mem: 1G, memory: 1G}")), HasSubstr("said twice"));
  const auto member = read("{kind: gang, command: [x], gang: {members: [{mem: lots}]}}");
  EXPECT_EQ(member.findings.at(0).mistake.path, "/gang/members/0/mem");
}

TEST(DefinitionTest, HintsSayWhatToWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"{id: a, cmd: x, mem: 4GiB}", "write 4096, it is in MiB"},
      {"{id: a, cmd: x, mem: \"64\"}", "write 64 without quotes, it is in MiB"},
      {"{id: a, cmd: x, mem: lots}", "it is a number of MiB"},
      {"{name: a, command: x, parents: [b], mem: 1.5GiB}", "write 1536, it is in MiB"},
      {"{name: a, command: x, parents: [b], maxCompletionTime: 1h}", "write 3600, it is in seconds"},
      {"{id: a, cmd: x, healthChecks: [{protocol: TCP, intervalSeconds: 1m}]}", "write 60, it is in seconds"},
      {"{id: a, cmd: x, env: {A: 1}}", "write it in quotes: \"1\""},
      {"{id: a, cmd: x, env: {A: true}}", "write it in quotes: \"true\""},
      {"{id: a, cmd: x, gpus: 0.5}", "it is a number of whole GPUs"},
      {"{id: a, cmd: x, healthChecks: [{protocol: HTP}]}",
       "did you mean 'HTTP'? it is one of HTTP, HTTPS, TCP, COMMAND, MESOS_TCP, MESOS_HTTP, MESOS_HTTPS"},
      {"{id: a, cmd: x, healthChecks: [{protocol: http}]}", "did you mean 'HTTP'?"},
      {"{id: /A, cmd: x}", "write it in lower case: /a"},
      {"{id: a_b, cmd: x}", "an id has lower-case letters, digits, '-' and '.'"},
      {"{name: \"a b\", command: x, parents: [b]}", "a job's name has letters, digits"}};
  for (const auto& [text, words] : cases) {
    const auto shown = rendered(read(text));
    EXPECT_THAT(shown, HasSubstr(words)) << text;
    EXPECT_EQ(shown.find("regular expression"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("error."), std::string::npos) << shown;
  }
}

TEST(DefinitionTest, PrivilegedContainersAreToldOf) {
  const auto app = read("{id: a, container: {docker: {image: i, privileged: true}}}");
  EXPECT_THAT(warned(app), HasSubstr("/container/docker/privileged: a daemon refuses it"));
  EXPECT_THAT(warned(app), HasSubstr("--allow-privileged"));
  const auto mesos = read("{id: a, container: {type: MESOS, docker: {image: i, privileged: true}}}");
  EXPECT_THAT(rendered(mesos), HasSubstr("Only containers of a Docker Engine"));
  EXPECT_THAT(rendered(read("{kind: task, command: [x], privileged: true}")), HasSubstr("Docker Engine"));
  EXPECT_THAT(warned(read("{kind: task, image: i, privileged: true}")), HasSubstr("/privileged: a daemon"));
  EXPECT_THAT(
      warned(read(
          "{id: g, groups: [{id: h, apps: [{id: a, container: {docker: {image: i, privileged: true}}}]}]}")),
      HasSubstr("/groups(0)/apps(0)/container/docker/privileged"));
  EXPECT_EQ(warned(read("{id: a, container: {docker: {image: i, privileged: false}}}")), "");
}

TEST(DefinitionTest, ExamplesToStartFromAreRight) {
  for (const auto& example : kExampleFiles) {
    const auto found = read(example.text);
    EXPECT_EQ(rendered(found) + warned(found), "") << example.kind;
    ASSERT_EQ(found.all.size(), 1u);
    EXPECT_EQ(kind_word(found.all[0].kind), example.kind);
  }
}

TEST(DefinitionTest, TellsAppsGroupsAndJobsApart) {
  const auto found = read(
      "id: web\ncmd: sleep 9\n---\nid: shop\napps:\n  - {id: web, cmd: sleep 9}\n---\n"
      "- {name: nightly, command: 'true', schedule: R/2030-01-31T02:30:00Z/P1D}\n"
      "- {name: after, command: 'true', parents: [nightly]}\n");
  EXPECT_EQ(rendered(found), "");
  ASSERT_EQ(found.all.size(), 4u);
  EXPECT_EQ(found.all[0].name, "/web");
  EXPECT_EQ(found.all[1].kind, DefinitionKind::kGroup);
  EXPECT_EQ(found.all[1].name, "/shop");
  EXPECT_EQ(found.all[2].kind, DefinitionKind::kJob);
  EXPECT_EQ(found.all[3].kind, DefinitionKind::kDependentJob);
  EXPECT_EQ(found.all[3].place, (Place{9, 3}));
}

TEST(DefinitionTest, ShowsEveryMistakeWhereItStands) {
  const auto found =
      read("id: web\ncmd: sleep 9\ncpus: lots\nhealthChecks:\n  - protocol: HTTP\n    path: 7\n");
  EXPECT_EQ(rendered(found),
            "f.yaml:3:7: /cpus: expected a number\n"
            "  cpus: lots\n"
            "        ^\n"
            "f.yaml:6:11: /healthChecks(0)/path: expected text\n"
            "      path: 7\n"
            "            ^\n"
            "  write it in quotes: \"7\"\n");
  EXPECT_TRUE(found.all.empty());
  const auto inner =
      read("{\"id\": \"shop\", \"apps\": [\n  {\"id\": \"web\", \"cmd\": \"x\", \"mem\": \"1\"}]}");
  ASSERT_EQ(inner.findings.size(), 1u);
  EXPECT_EQ(inner.findings[0].mistake.path, "/apps(0)/mem");
  EXPECT_EQ(inner.findings[0].mistake.place.line, 2u);
  const auto listed = read("- {id: a, cmd: x}\n- {id: b, cmd: x, mem: no}\n");
  ASSERT_EQ(listed.findings.size(), 1u);
  EXPECT_EQ(listed.findings[0].mistake.path, "(1)/mem");
  EXPECT_EQ(listed.findings[0].mistake.place, (Place{2, 24}));
  EXPECT_EQ(listed.all.size(), 1u) << "what is right is known besides";
}

TEST(DefinitionTest, MistakesOfJobsHaveTheirPlacesToo) {
  const auto found = read("name: nightly\ncommand: 'true'\nmem: lots\nschedule: tomorrow\n");
  ASSERT_EQ(found.findings.size(), 2u) << rendered(found);
  EXPECT_EQ(found.findings[0].mistake.place, (Place{3, 6}));
  EXPECT_EQ(found.findings[1].mistake.path, "/schedule");
  EXPECT_EQ(found.findings[1].mistake.place, (Place{4, 11}));
}

TEST(DefinitionTest, SaysWhatIsNearestToWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"{apiVersion: v1, kind: Pod}", "Kubernetes"},
      {"{name: x, command: y, shedule: R/2030-01-31T02:30:00Z/P1D}", "did you mean 'schedule'"},
      {"{id: x}", "nearest to an app"},
      {"{name: x, command: y}", "nearest to a job"},
      {"{cmd: x}", "that needs 'id'"},
      {"{colour: red}", "an app has 'id'"},
      {"just text", "an app has 'id'"},
      {"[]", "an app has 'id'"},
      {"{apps: [{id: a, cmd: x}]}", "list of apps"},
      {"{id: /, apps: [{id: a, cmd: x}]}", "list of apps"},
      {"", "an app has 'id'"}};
  for (const auto& [text, words] : cases) {
    const auto found = read(text);
    EXPECT_TRUE(found.all.empty()) << text;
    EXPECT_THAT(rendered(found), HasSubstr(words)) << text;
  }
}

TEST(DefinitionTest, TwoOfOneNameAreAMistake) {
  auto all = read("{id: web, cmd: x}", "a.yaml");
  all.add(read("{id: /web, cmd: y}", "b.yaml"));
  all.add(read("{name: web, command: y, parents: [a]}", "c.yaml"));
  all.add(read("- {kind: task, name: web, command: [y]}\n- {kind: task, name: web, command: [y]}", "d.yaml"));
  find_doubles(all);
  ASSERT_EQ(all.findings.size(), 1u);
  EXPECT_EQ(render(all.findings[0]),
            "b.yaml:1:1: the app '/web' stands in 'a.yaml', line 1 already\n  keep one of the two\n");
}

TEST(DefinitionTest, NothingPlaysTricksOnTheTerminal) {
  EXPECT_EQ(rendered(read("\"\\e[2J\": 1\nid: x\n")).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace drover::cli
