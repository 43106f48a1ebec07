#include "cli/top/frame.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace drover::cli::top {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Kind = Key::Kind;

json process(int pid, const json& task) {
  return {{"pid", pid},           {"name", "python3"},
          {"task", task},         {"user", task.is_null() ? json() : "alice"},
          {"uid", 1000},          {"container_pid", 7},
          {"container", nullptr}, {"memory_bytes", 5'000'000'000},
          {"gpu_percent", 40}};
}

json gpu(int index, int percent) {
  return {{"index", index},
          {"node", "n1"},
          {"uuid", fmt::format("GPU-{}", index)},
          {"model", "NVIDIA A100"},
          {"memory_bytes", 40ULL << 30},
          {"healthy", true},
          {"holders", json::array({{{"user", "alice"}, {"task", "1f3a"}, {"milli", 1000}, {"memory", 0}}})},
          {"usage",
           {{"gpu_percent", percent},
            {"memory_used_bytes", 10ULL << 30},
            {"temperature", 54},
            {"power_mw", 310'400},
            {"foreign", {{"processes", 0}, {"memory_bytes", 0}}},
            {"processes", json::array({process(100 + index, "1f3a"), process(200 + index, nullptr)})}}}};
}

json record(const std::string& id, const std::string& name, const std::string& state,
            const std::string& reason) {
  json made = {
      {"task",
       {{"id", id}, {"name", name}, {"user", {{"name", "alice"}}}, {"queue", "default"}, {"gpus", 2}}},
      {"state", state},
      {"reason", reason},
      {"grants", json::array()},
      {"submitted_at", "2026-11-23T10:00:00.000Z"}};
  if (state == "running") made["grants"] = {{{"gpu", "GPU-0"}, {"milli", 1000}}};
  return made;
}

json waiting(const json& id, int place) {
  return {{"id", id},
          {"user", id.is_null() ? "bob" : "alice"},
          {"wanted", {{"gpus", 4}}},
          {"members", 1},
          {"place", place},
          {"reasons", json::array()}};
}

Snapshot snapshot(int gpus = 2) {
  Snapshot seen;
  seen.gpus = {{"simulated", true},
               {"simulation", "dgx"},
               {"driver_version", "535.1"},
               {"problems", json::array()},
               {"gpus", json::array()}};
  for (int i = 0; i < gpus; ++i) seen.gpus["gpus"].push_back(gpu(i, 10 * i));
  seen.tasks = {record("77b0", "later", "queued", "all GPUs are taken"),
                record("1f3a", "train", "running", "")};
  seen.queues = {{{"queue", "default"}, {"waiting", json::array({waiting(nullptr, 1), waiting("77b0", 2)})}}};
  return seen;
}

/// Somebody at a terminal.
struct Sitter {
  explicit Sitter(Snapshot seen = snapshot(), int columns = 80, int lines = 24)
      : width(columns), height(lines) {
    look(std::move(seen));
  }
  void look(Snapshot seen) {
    histories.add(seen.gpus);
    panels = panels_of(seen, histories);
    around.machine = machine_words(seen);
    settle(view, panels, height);
  }
  Wish key(Kind kind) { return take({kind}); }
  Wish take(const Key& given) {
    auto wish = take_key(view, panels, given, width, height);
    settle(view, panels, height);
    return wish;
  }
  Wish type(const std::string& text) {
    Wish wish;
    for (const char letter : text)
      wish = take(letter == '\n' ? Key{Kind::kEnter} : Key{Kind::kText, std::string(1, letter)});
    return wish;
  }
  std::string text(bool unicode = true) const {
    return draw(view, panels, around, width, height, unicode).plain();
  }

  int width, height;
  Histories histories;
  Panels panels;
  View view;
  Surroundings around{.clock = "10:00:00Z"};
};

TEST(TopFrame, ShowsGpusProcessesAndTasks) {
  const Sitter sitter;
  const auto text = sitter.text();
  EXPECT_THAT(text, HasSubstr("drover top: n1, simulated (dgx), driver 535.1"));
  EXPECT_THAT(text, HasSubstr("10 of 40 GiB"));
  EXPECT_THAT(text, HasSubstr("54C  310W alice 1f3a"));
  EXPECT_THAT(text, testing::ContainsRegex("100 +7 +0 alice +1f3a +4.7 GiB +40% python3"));
  EXPECT_THAT(text, testing::ContainsRegex("200 +7 +0 1000 +- "));
  EXPECT_THAT(text, testing::ContainsRegex("1f3a +train +alice +running +0 "));
  EXPECT_THAT(text, testing::ContainsRegex("- +- +bob +waiting 1 +wants 4"));
  EXPECT_THAT(text, testing::ContainsRegex("77b0 +later +alice +waiting 2 +wants 2 .*all GPUs "));
  EXPECT_THAT(text, HasSubstr("Tasks: 1 run, 2 wait"));
  EXPECT_LT(text.find("waiting 1"), text.find("waiting 2"));
}

TEST(TopFrame, FitsEveryTerminal) {
  for (const auto& [width, height] :
       {std::pair(80, 24), std::pair(250, 60), std::pair(1, 1), std::pair(20, 4), std::pair(1000, 3)}) {
    Sitter sitter(snapshot(16), width, height);
    for (const bool unicode : {true, false}) {
      const auto screen = draw(sitter.view, sitter.panels, sitter.around, width, height, unicode);
      EXPECT_EQ(screen.width(), width);
      EXPECT_EQ(screen.height(), height);
      if (!unicode) EXPECT_EQ(screen.plain().find_first_of("\x80\xe2"), std::string::npos);
    }
    sitter.key(Kind::kPageDown);
    sitter.key(Kind::kTab);
    sitter.take({Kind::kPress, "", width - 1, height - 1});
  }
  const Sitter wide(snapshot(16), 250, 60);
  EXPECT_THAT(wide.text(), HasSubstr("NVIDIA A100"));
}

TEST(TopFrame, ShowsEveryPanelAt80x24With16Gpus) {
  const auto text = Sitter(snapshot(16)).text();
  for (const auto* title : {"GPUs: 16", "Processes: 32", "Tasks: 1 run, 2 wait", "q quit"})
    EXPECT_THAT(text, HasSubstr(title));
}

TEST(TopFrame, NobodysNamesAreObeyed) {
  auto seen = snapshot();
  const std::string evil = "x\033]0;owned\007\033[2J\u202e\nfake";
  seen.gpus["gpus"][0]["usage"]["processes"][0]["name"] = evil;
  seen.gpus["gpus"][0]["model"] = seen.gpus["simulation"] = evil;
  seen.tasks[0]["task"]["name"] = seen.tasks[0]["reason"] = evil;
  Sitter sitter(seen, 250, 40);
  sitter.view.focus = 2;
  sitter.key(Kind::kEnd);
  sitter.type("k");
  const auto bytes = changes(nullptr, draw(sitter.view, sitter.panels, sitter.around, 250, 40, true), true);
  EXPECT_THAT(bytes, HasSubstr("x?]0;owned??[2J??fake"));
  for (const auto* trick : {"\033]", "\007", "\n", "\u202e"}) EXPECT_THAT(bytes, Not(HasSubstr(trick)));
}

TEST(TopView, ChoosesScrollsAndStaysWithItsRow) {
  Sitter sitter(snapshot(16));
  sitter.key(Kind::kTab);
  ASSERT_EQ(sitter.view.focus, 1U);
  const auto& state = sitter.view.panels.at(1);
  for (int i = 0; i < 20; ++i) sitter.key(Kind::kDown);
  EXPECT_EQ(state.selected, "GPU-10 110");
  EXPECT_GT(state.top, 0U);
  EXPECT_THAT(sitter.text(), HasSubstr(" 110 "));
  auto fewer = snapshot(16);
  fewer.gpus["gpus"].erase(0);
  sitter.look(fewer);
  EXPECT_EQ(state.selected, "GPU-10 110");
  fewer.gpus["gpus"] = json::array();
  sitter.look(fewer);
  EXPECT_EQ(state.selected, "");
  sitter.key(Kind::kDown);
  sitter.look(snapshot(1));
  EXPECT_EQ(state.selected, "GPU-0 100");
}

TEST(TopView, SortsSearchesAndFilters) {
  Sitter sitter(snapshot(3));
  sitter.key(Kind::kTab);
  sitter.type("sr");
  EXPECT_EQ(sitter.view.panels.at(1).sort, 0U);
  auto rows = rows_of(sitter.panels[1], sitter.view.panels[1], sitter.view.filter);
  EXPECT_EQ(rows.front()->key, "GPU-2 202");
  sitter.type("/101\n");
  EXPECT_EQ(sitter.view.panels.at(1).selected, "GPU-1 101");
  sitter.type("/nowhere\n");
  EXPECT_THAT(sitter.text(), HasSubstr("'nowhere' is in no row"));
  sitter.type("fgpu:2 user:ali\n");
  rows = rows_of(sitter.panels[1], sitter.view.panels[1], sitter.view.filter);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front()->key, "GPU-2 102");
  EXPECT_THAT(sitter.text(), HasSubstr("Processes: 6, 1 shown"));
  sitter.view.filter = "task:train";
  EXPECT_EQ(rows_of(sitter.panels[1], {}, sitter.view.filter).size(), 3U);
}

TEST(TopView, StopsATaskOnlyAfterAYes) {
  Sitter sitter;
  sitter.type("k");
  EXPECT_EQ(sitter.view.mode, View::Mode::kUsual) << "no task is selected";
  sitter.key(Kind::kTab);
  sitter.type("k");
  EXPECT_THAT(sitter.text(), HasSubstr("Stop task 1f3a (train) of alice? y: ask it to end"));
  EXPECT_EQ(sitter.type("n").kind, Wish::Kind::kNone);
  EXPECT_THAT(sitter.text(), HasSubstr("Task 1f3a goes on"));
  sitter.type("k");
  sitter.look(snapshot(1));
  const auto wish = sitter.type("y");
  EXPECT_EQ(wish.kind, Wish::Kind::kStop);
  EXPECT_EQ(wish.task, "1f3a");
  EXPECT_FALSE(wish.force);
  sitter.type("k");
  EXPECT_TRUE(sitter.type("f").force);
  sitter.key(Kind::kDown);
  sitter.type("k");
  EXPECT_EQ(sitter.view.mode, View::Mode::kUsual) << "a process that is in no task";
}

TEST(TopView, TheMouseChoosesAndSorts) {
  Sitter sitter;
  const auto areas = areas_of(sitter.view, sitter.panels, 24);
  sitter.take({Kind::kPress, "", 3, areas.at(2).top + 3});
  EXPECT_EQ(sitter.view.focus, 2U);
  EXPECT_EQ(sitter.view.panels.at(2).selected, "waiting 1");
  sitter.take({Kind::kPress, "", 2, areas.at(2).top + 1});
  EXPECT_EQ(sitter.view.panels.at(2).sort, 0U);
  EXPECT_FALSE(sitter.view.panels.at(2).reversed);
  sitter.take({Kind::kPress, "", 2, areas.at(2).top + 1});
  EXPECT_TRUE(sitter.view.panels.at(2).reversed);
}

TEST(TopView, PausesAndTakesItsTime) {
  Sitter sitter;
  sitter.type("p");
  EXPECT_THAT(sitter.text(), HasSubstr("paused"));
  sitter.type("p+");
  EXPECT_THAT(sitter.text(), HasSubstr("every 2 s"));
  sitter.type("----------");
  EXPECT_EQ(sitter.view.interval, kShortest);
  EXPECT_EQ(sitter.type("q").kind, Wish::Kind::kQuit);
  EXPECT_EQ(sitter.key(Kind::kInterrupt).kind, Wish::Kind::kQuit);
  sitter.type("/");
  EXPECT_EQ(sitter.type("q").kind, Wish::Kind::kNone) << "it is typed";
  sitter.key(Kind::kEscape);
  sitter.type("?");
  EXPECT_THAT(sitter.text(), HasSubstr("the next panel"));
}

TEST(TopFrame, TroubleIsTold) {
  Sitter sitter;
  sitter.around.trouble = "Failed to reach the daemon";
  EXPECT_THAT(sitter.text(), HasSubstr("\nFailed to reach the daemon\n"));
}

TEST(TopFrame, WhatIsCutStandsBelow) {
  Sitter sitter;
  sitter.view.focus = 2;
  sitter.key(Kind::kEnd);
  EXPECT_THAT(sitter.text(), testing::ContainsRegex("\nall GPUs are taken +. help\n"));
}

TEST(TopFrame, OnceIsAllOfIt) {
  const Sitter sitter(snapshot(16));
  const auto text = draw_once(sitter.panels, sitter.around, 80, false).plain();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 3 * 2 + 16 + 32 + 3);
  EXPECT_THAT(text, Not(HasSubstr("q quit")));
}

TEST(TopHistories, ForgetWhatIsGone) {
  Histories histories;
  for (int i = 0; i < 1000; ++i) histories.add(snapshot().gpus);
  EXPECT_EQ(histories.of("GPU-1").size(), Histories::kLongest);
  histories.add(snapshot(1).gpus);
  EXPECT_THAT(histories.of("GPU-1"), testing::IsEmpty());
  auto unknown = snapshot(1).gpus;
  unknown["gpus"][0]["usage"] = nullptr;
  histories.add(unknown);
  EXPECT_EQ(histories.of("GPU-0").back(), -1);
}

}  // namespace
}  // namespace drover::cli::top
