#include "cli/definitions/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace drover::cli {
namespace {

using ::testing::HasSubstr;

constexpr TimePoint kNow{std::chrono::hours(24 * 365 * 55)};

Definitions read(std::string_view text, const std::string& file = "f.yaml") {
  return read_definitions(file, text, kNow);
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
    const auto read = read_definitions(entry.path(), read_file(entry.path()).value(), kNow);
    EXPECT_EQ(rendered(read), "") << entry.path();
    for (const auto& each : read.all) ++kinds[std::string(kind_word(each.kind)) + " " + each.name];
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"app /tensorflow-app", 1},
                                               {"app /tensorflow-gpus", 2},
                                               {"job test-gpu", 1},
                                               {"job test2-gpu", 1}}));
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
            "            ^\n");
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
