#include "cli/top/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace drover::cli::top {
namespace {

using Mode = View::Mode;

constexpr Style kTitle{.bold = true};
constexpr Style kNames{.colour = Colour::kDim};
constexpr Style kAlarm{.colour = Colour::kRed, .bold = true};
constexpr int kBar = 6;  // cells of a bar before text

constexpr std::array<const char*, 15> kHelp = {
    "drover top: what the GPUs do, and for whom",
    "",
    "Up, Down, PgUp, PgDn, Home, End   choose a row; the mouse does, too",
    "Tab, Shift-Tab                    the next panel, the one before",
    "s or >, <                         sort by the next column, the one before; a click on its name",
    "r                                 the other way round",
    "/, n                              search for a text in this panel, and again",
    "f                                 only rows with these words: a text, user:X, task:X, gpu:N",
    "k                                 stop the task of this row, after a question",
    "p                                 pause, and go on",
    "+, -                              look more rarely, more often",
    "Ctrl-L                            draw all anew",
    "Ctrl-Z                            suspend",
    "q                                 quit",
    "INSIDE is what a process is called in its own container.",
};

void draw_field(Screen& screen, const Field& field, const Column& column, int x, int y, int room) {
  if (!field.graph.empty()) return screen.graph(x, y, room, field.graph, {.colour = Colour::kGreen});
  if (field.percent && room > kBar) {
    screen.bar(x, y, kBar, *field.percent, {.colour = field.colour});
    const int behind = x + kBar + 1;
    return screen.put_right(behind, y, field.text, {}, room - kBar - 1);
  }
  if (column.right) return screen.put_right(x, y, field.text, {.colour = field.colour}, room);
  screen.put(x, y, field.text, {.colour = field.colour}, room);
}

/// The names of the columns; the one that sorts says in which direction.
void draw_names(Screen& screen, const Panel& panel, const PanelView& state, int y) {
  for (const auto& placed : columns_of(panel, screen.width())) {
    const auto& column = panel.columns[placed.index];
    std::string name = column.title;
    if (state.sort == placed.index) name += state.reversed ? "-" : "+";
    if (column.right)
      screen.put_right(placed.x, y, name, kNames, placed.room);
    else
      screen.put(placed.x, y, name, kNames, placed.room);
  }
}

void draw_rows(Screen& screen, const Panel& panel, const std::vector<const Row*>& rows, std::size_t first,
               int y, int count) {
  const auto columns = columns_of(panel, screen.width());
  for (int i = 0; i < count && first + static_cast<std::size_t>(i) < rows.size(); ++i)
    for (const auto& placed : columns) {
      const auto& row = *rows[first + static_cast<std::size_t>(i)];
      draw_field(screen, row.fields.at(placed.index), panel.columns[placed.index], placed.x, y + i,
                 placed.room);
    }
}

void draw_panel(Screen& screen, const View& view, const Panel& panel, std::size_t number, const Area& area) {
  if (area.height == 0) return;
  const auto& state = view.panels.at(number);
  const auto rows = rows_of(panel, state, view.filter);
  auto title = panel.title;
  if (rows.size() != panel.rows.size()) title += fmt::format(", {} shown", rows.size());
  const bool focused = view.focus == number;
  screen.put(0, area.top, (focused ? "> " : "  ") + title, kTitle);
  if (area.height > 1) draw_names(screen, panel, state, area.top + 1);
  const int first_line = area.top + 2;
  draw_rows(screen, panel, rows, state.top, first_line, area.rows());
  if (!focused) return;
  for (std::size_t i = state.top; i < rows.size() && i < state.top + static_cast<std::size_t>(area.rows());
       ++i)
    if (rows[i]->key == state.selected)
      screen.mark(0, first_line + static_cast<int>(i - state.top), screen.width());
}

void draw_head(Screen& screen, const Surroundings& around, const std::string& rhythm) {
  auto right = rhythm.empty() ? around.clock : rhythm + "  " + around.clock;
  if (2 * static_cast<int>(right.size()) > screen.width()) right.clear();
  const int room = static_cast<int>(right.size());
  screen.put(0, 0, around.machine.empty() ? "drover top" : "drover top: " + around.machine, kTitle,
             screen.width() - room - 1);
  screen.put(screen.width() - room, 0, right);
}

/// What of the row that is chosen is cut; "" when nothing is.
std::string cut_text(const View& view, const Panels& panels, int width) {
  const auto& panel = panels.at(view.focus);
  const auto& state = view.panels.at(view.focus);
  for (const auto* row : rows_of(panel, state, view.filter)) {
    if (row->key != state.selected) continue;
    for (const auto& placed : columns_of(panel, width)) {
      const auto& text = row->fields.at(placed.index).text;
      if (panel.columns[placed.index].spreads && static_cast<int>(display_width(text)) > placed.room)
        return text;
    }
  }
  return "";
}

std::string question_words(const Question& question) {
  auto words = "Stop task " + question.task;
  if (!question.name.empty()) words += fmt::format(" ({})", question.name);
  if (!question.user.empty()) words += " of " + question.user;
  return words + "? y: ask it to end, f: kill it, any other key: no";
}

void draw_foot(Screen& screen, const View& view, const Panels& panels, const Surroundings& around) {
  const int y = screen.height() - 1;
  if (view.mode == Mode::kQuestion) {
    screen.put(0, y, question_words(view.question), kAlarm);
  } else if (view.mode == Mode::kSearch || view.mode == Mode::kFilter) {
    const int x = screen.put(0, y, view.mode == Mode::kSearch ? "Search: " : "Only: ", kTitle);
    const int behind = screen.put(x, y, view.input);
    screen.put(behind, y, " ", {.reversed = true});
  } else if (!around.trouble.empty()) {
    screen.put(0, y, around.trouble, kAlarm);
  } else if (!view.message.empty()) {
    screen.put(0, y, view.message, kTitle);
  } else if (const auto cut = cut_text(view, panels, screen.width()); !cut.empty()) {
    constexpr int kRoomOfHint = 8;
    screen.put(0, y, cut, {}, screen.width() - kRoomOfHint);
    screen.put(screen.width() - kRoomOfHint + 2, y, "? help", kNames);
  } else {
    const auto filter = view.filter.empty() ? "" : "Only " + view.filter + " | ";
    screen.put(0, y,
               filter + "q quit  Tab panel  s sort  r turn  / search  f filter  k stop  p pause  ? help",
               kNames);
  }
}

std::string rhythm_of(const View& view) {
  if (view.paused) return "paused";
  return fmt::format("every {:g} s", static_cast<double>(view.interval.count()) / 1000);
}

}  // namespace

Screen draw(const View& view, const Panels& panels, const Surroundings& around, int width, int height,
            bool unicode) {
  Screen screen(width, height, unicode);
  draw_head(screen, around, rhythm_of(view));
  if (view.mode == Mode::kHelp) {
    for (std::size_t i = 0; i < kHelp.size(); ++i) screen.put(0, static_cast<int>(i) + 1, kHelp.at(i));
    return screen;
  }
  const auto areas = areas_of(view, panels, height);
  for (std::size_t i = 0; i < kPanels; ++i) draw_panel(screen, view, panels.at(i), i, areas.at(i));
  draw_foot(screen, view, panels, around);
  return screen;
}

Screen draw_once(const Panels& panels, const Surroundings& around, int width, bool unicode) {
  int height = 1;
  for (const auto& panel : panels) height += 2 + static_cast<int>(panel.rows.size());
  Screen screen(width, height, unicode);
  draw_head(screen, around, "");
  int y = 1;
  for (const auto& panel : panels) {
    const PanelView state;
    const auto rows = rows_of(panel, state, "");
    screen.put(0, y, panel.title, kTitle);
    draw_names(screen, panel, state, y + 1);
    draw_rows(screen, panel, rows, 0, y + 2, static_cast<int>(rows.size()));
    y += 2 + static_cast<int>(rows.size());
  }
  return screen;
}

}  // namespace drover::cli::top
