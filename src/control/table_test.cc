#include "control/table.h"

#include <gmock/gmock.h>

namespace drover::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ids_below(const Overlay<GroupRecord>& table, const std::string& begin) {
  std::vector<std::string> ids;
  table.each_below(begin, [&](const std::string& id, const GroupRecord&) { ids.push_back(id); });
  return ids;
}

TEST(Overlay, RowsAreVisitedByIdWithWhatChanged) {
  Rows<GroupRecord> rows;
  for (const auto* id : {"a/1", "b/1", "b/3", "b/5", "c/1"}) rows.emplace(id, GroupRecord());
  Overlay<GroupRecord> table(rows);
  EXPECT_THAT(ids_below(table, "b/"), ElementsAre("b/1", "b/3", "b/5"));
  table.put("b/0", {});
  table.put("b/4", {});
  table.put("b/6", {});
  table.put("bb", {});
  table.change("b/3");
  table.remove("b/5");
  table.remove("a/1");
  EXPECT_THAT(ids_below(table, "b/"), ElementsAre("b/0", "b/1", "b/3", "b/4", "b/6"));
  EXPECT_THAT(ids_below(table, ""), ElementsAre("b/0", "b/1", "b/3", "b/4", "b/6", "bb", "c/1"));
  EXPECT_THAT(ids_below(table, "a/"), IsEmpty());
  EXPECT_THAT(ids_below(table, "d"), IsEmpty());
}

}  // namespace
}  // namespace drover::control
