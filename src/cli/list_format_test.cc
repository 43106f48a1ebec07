#include "cli/list_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ListFormat, NamesColumns) {
  const auto format = ListFormat::parse("id, Name,state");
  ASSERT_TRUE(format);
  EXPECT_FALSE(format->is_text());
  EXPECT_THAT(format->names(), ElementsAre("id", "name", "state"));
}

TEST(ListFormat, MakesALine) {
  const auto format = ListFormat::parse("{id}: is {state}!");
  ASSERT_TRUE(format);
  EXPECT_THAT(format->names(), ElementsAre("id", "state"));
  EXPECT_EQ(format->line({"1", "up"}), "1: is up!\n");
}

TEST(ListFormat, UnderstandsDocker) {
  const auto format = ListFormat::parse(R"({{.ID}}\t{{ .State }})");
  ASSERT_TRUE(format);
  EXPECT_EQ(format->line({"1", "up"}), "1\tup\n");
  const auto table = ListFormat::parse(R"(table {{.ID}}\t{{.State}})");
  ASSERT_TRUE(table);
  EXPECT_FALSE(table->is_text());
  EXPECT_THAT(table->names(), ElementsAre("id", "state"));
}

TEST(ListFormat, SaysWhatIsWrong) {
  for (const auto* bad : {"{id", "{{.ID}", "{}", "{{json .}}", "{{range .Ports}}"}) {
    const auto format = ListFormat::parse(bad);
    ASSERT_FALSE(format) << bad;
    EXPECT_THAT(format.error().message, HasSubstr(bad));
  }
}

TEST(ListFormat, TakesFieldsOfAnObject) {
  const json object = {{"state", "up"}, {"task", {{"name", "train"}, {"gpus", 2}}}, {"many", {1, 2}}};
  EXPECT_EQ(ListFormat::parse("{state} {task.name} {task.gpus} {task.x.y} {many}.")->line_of(object),
            "up train 2  [1,2].\n");
  EXPECT_EQ(ListFormat::parse("state,task.gpus,state.x")->line_of(object), "up\t2\t\n");
}

TEST(ListFormat, ChoosesFromATable) {
  Table table({"ID", "USED BY", "GPUS (simulated)"});
  table.add({"1", "ann", "2"});
  EXPECT_THAT(table.names(), ElementsAre("id", "used-by", "gpus"));
  const auto chosen = table.with({"gpus", "id"});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->render(), "GPUS (simulated)  ID\n               2   1\n");
  const auto none = table.with({"use-by"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "--format: there is no column 'use-by'");
  EXPECT_EQ(none.error().hint, "there are id, used-by, gpus");
}

}  // namespace
}  // namespace drover::cli
