#include "cli/top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

namespace drover::cli::top {
namespace {

using Kind = Key::Kind;
using Mode = View::Mode;

constexpr int kTitles = 2;  // lines of a panel before its rows
constexpr std::size_t kMostInput = 200;
constexpr int kWheelRows = 3;

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

bool contains(std::string_view text, std::string_view part) {
  return lower(text).find(part) != std::string::npos;
}

bool any_field_contains(const Row& row, const std::string& part) {
  return contains(row.task_name, part) ||
         std::ranges::any_of(row.fields, [&](const Field& field) { return contains(field.text, part); });
}

/// `word` is in small letters.
bool passes(const Row& row, const std::string& word) {
  if (word.starts_with("user:")) return contains(row.user, word.substr(5));
  if (word.starts_with("task:"))
    return contains(row.task, word.substr(5)) || contains(row.task_name, word.substr(5));
  if (word.starts_with("gpu:")) return std::ranges::find(row.gpus, word.substr(4)) != row.gpus.end();
  return any_field_contains(row, word);
}

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char letter : lower(text))
    if (letter == ' ')
      words.emplace_back();
    else
      words.back() += letter;
  std::erase(words, "");
  return words;
}

bool is_before(const Field& one, const Field& other) {
  if (one.order && other.order) return *one.order < *other.order;
  return one.text < other.text;
}

/// What keys are for.
struct Focused {
  View& view;
  const Panel& panel;
  PanelView& state;
  std::vector<const Row*> rows;
  int seen;  ///< how many rows fit

  Focused(View& the_view, const Panels& panels, int height)
      : view(the_view),
        panel(panels.at(view.focus)),
        state(view.panels.at(view.focus)),
        rows(rows_of(panel, state, view.filter)),
        seen(areas_of(view, panels, height).at(view.focus).rows()) {}

  std::size_t selected() const {
    const auto found = std::ranges::find_if(rows, [&](const Row* row) { return row->key == state.selected; });
    return found == rows.end() ? 0 : static_cast<std::size_t>(found - rows.begin());
  }
  const Row* row() const { return rows.empty() ? nullptr : rows[selected()]; }
  void select(std::ptrdiff_t at) {
    if (rows.empty()) return;
    const auto last = static_cast<std::ptrdiff_t>(rows.size()) - 1;
    state.selected = rows[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))]->key;
  }
  void move(std::ptrdiff_t by) { select(static_cast<std::ptrdiff_t>(selected()) + by); }
};

/// The next row from the selected one on that has the text.
void find_next(Focused& focused, bool from_here) {
  auto& view = focused.view;
  const auto part = lower(view.search);
  const auto count = focused.rows.size();
  for (std::size_t step = from_here ? 0 : 1; step < count + (from_here ? 0 : 1); ++step) {
    const auto at = (focused.selected() + step) % count;
    if (!any_field_contains(*focused.rows[at], part)) continue;
    return focused.select(static_cast<std::ptrdiff_t>(at));
  }
  view.message = fmt::format("'{}' is in no row of this panel", view.search);
}

void sort_by_next(Focused& focused, int step) {
  auto& sort = focused.state.sort;
  const auto count = static_cast<int>(focused.panel.columns.size()) + 1;  // and as it comes
  const int now = sort ? static_cast<int>(*sort) : count - 1;
  const int next = (now + step + count) % count;
  sort = next == count - 1 ? std::nullopt : std::optional(static_cast<std::size_t>(next));
  focused.view.message = sort ? fmt::format("Sorted by {}", focused.panel.columns.at(*sort).title)
                              : std::string("In the order in which it comes");
}

void ask_to_stop(Focused& focused) {
  auto& view = focused.view;
  const auto* row = focused.row();
  if (row == nullptr || row->task.empty()) {
    view.message = "No task is selected: choose one, or a process of one";
    return;
  }
  view.mode = Mode::kQuestion;
  view.question = {row->task, row->task_name, row->user};
}

void change_interval(View& view, bool longer) {
  view.interval = std::clamp(longer ? view.interval * 2 : view.interval / 2, kShortest, kLongestInterval);
  view.message = fmt::format("A look every {:g} s", static_cast<double>(view.interval.count()) / 1000);
}

Wish take_letter(Focused& focused, const std::string& letter) {
  auto& view = focused.view;
  const auto ask = [&](Mode mode, const std::string& before) {
    view.mode = mode;
    view.input = before;
  };
  if (letter == "q") return {Wish::Kind::kQuit};
  if (letter == "?" || letter == "h") view.mode = Mode::kHelp;
  if (letter == "/") ask(Mode::kSearch, "");
  if (letter == "f") ask(Mode::kFilter, view.filter);
  if (letter == "n" && !view.search.empty()) find_next(focused, false);
  if (letter == "s" || letter == ">") sort_by_next(focused, 1);
  if (letter == "<") sort_by_next(focused, -1);
  if (letter == "r") focused.state.reversed = !focused.state.reversed;
  if (letter == "k") ask_to_stop(focused);
  if (letter == "p") view.paused = !view.paused;
  if (letter == "+" || letter == "-") change_interval(view, letter == "+");
  return {};
}

void take_press(View& view, const Panels& panels, const Key& key, int width, int height) {
  const auto areas = areas_of(view, panels, height);
  for (std::size_t i = 0; i < kPanels; ++i) {
    const auto& area = areas.at(i);
    if (key.y < area.top || key.y >= area.top + area.height) continue;
    view.focus = i;
    auto& state = view.panels.at(i);
    if (key.y == area.top + 1) {  // a column's name
      for (const auto& column : columns_of(panels.at(i), width)) {
        if (key.x < column.x || key.x >= column.x + column.room) continue;
        state.reversed = state.sort == column.index && !state.reversed;
        state.sort = column.index;
      }
    } else if (key.y > area.top + 1) {
      Focused focused(view, panels, height);
      const auto at = state.top + static_cast<std::size_t>(key.y - area.top - kTitles);
      if (at < focused.rows.size()) focused.select(static_cast<std::ptrdiff_t>(at));
    }
    return;
  }
}

Wish take_usual(View& view, const Panels& panels, const Key& key, int width, int height) {
  Focused focused(view, panels, height);
  switch (key.kind) {
    case Kind::kText:
      return take_letter(focused, key.text);
    case Kind::kInterrupt:
      return {Wish::Kind::kQuit};
    case Kind::kUp:
      focused.move(-1);
      break;
    case Kind::kDown:
      focused.move(1);
      break;
    case Kind::kPageUp:
      focused.move(-std::max(focused.seen, 1));
      break;
    case Kind::kPageDown:
      focused.move(std::max(focused.seen, 1));
      break;
    case Kind::kHome:
      focused.select(0);
      break;
    case Kind::kEnd:
      focused.select(std::numeric_limits<std::ptrdiff_t>::max());
      break;
    case Kind::kLeft:
      sort_by_next(focused, -1);
      break;
    case Kind::kRight:
      sort_by_next(focused, 1);
      break;
    case Kind::kTab:
      view.focus = (view.focus + 1) % kPanels;
      break;
    case Kind::kBackTab:
      view.focus = (view.focus + kPanels - 1) % kPanels;
      break;
    case Kind::kPress:
      take_press(view, panels, key, width, height);
      break;
    case Kind::kWheelUp:
    case Kind::kWheelDown:
      focused.move(key.kind == Kind::kWheelUp ? -kWheelRows : kWheelRows);
      break;
    default:
      break;
  }
  return {};
}

/// A line is typed: Enter takes it, Escape does not.
void take_input(View& view, const Panels& panels, const Key& key, int height) {
  const bool searches = view.mode == Mode::kSearch;
  switch (key.kind) {
    case Kind::kText:
      if (view.input.size() < kMostInput) view.input += key.text;
      break;
    case Kind::kBackspace:
      while (!view.input.empty() && (static_cast<unsigned char>(view.input.back()) & 0xC0U) == 0x80)
        view.input.pop_back();
      if (!view.input.empty()) view.input.pop_back();
      break;
    case Kind::kEnter: {
      view.mode = Mode::kUsual;
      (searches ? view.search : view.filter) = view.input;
      Focused focused(view, panels, height);
      if (searches && !view.search.empty()) find_next(focused, true);
      break;
    }
    case Kind::kEscape:
    case Kind::kInterrupt:
      view.mode = Mode::kUsual;
      break;
    default:
      break;
  }
}

/// Only a 'y' is a yes.
Wish take_answer(View& view, const Key& key) {
  if (key.kind == Kind::kWheelUp || key.kind == Kind::kWheelDown || key.kind == Kind::kPress) return {};
  view.mode = Mode::kUsual;
  if (key.text == "y") return {Wish::Kind::kStop, view.question.task, false};
  if (key.text == "f") return {Wish::Kind::kStop, view.question.task, true};
  view.message = fmt::format("Task {} goes on", view.question.task);
  return {};
}

}  // namespace

std::vector<const Row*> rows_of(const Panel& panel, const PanelView& view, const std::string& filter) {
  const auto words = words_in(filter);
  std::vector<const Row*> rows;
  for (const auto& row : panel.rows)
    if (std::ranges::all_of(words, [&](const auto& word) { return passes(row, word); })) rows.push_back(&row);
  if (view.sort)
    std::ranges::sort(rows, [&](const Row* one, const Row* other) {
      const auto& left = one->fields.at(*view.sort);
      const auto& right = other->fields.at(*view.sort);
      return is_before(left, right) || (!is_before(right, left) && one < other);  // in one vector
    });
  if (view.reversed) std::ranges::reverse(rows);
  return rows;
}

std::array<Area, kPanels> areas_of(const View& view, const Panels& panels, int height) {
  constexpr int kLeast = kTitles + 2;
  std::array<Area, kPanels> areas;
  const int room = std::max(height - 2, 0);  // but for the first line and the last
  if (room < kLeast * static_cast<int>(kPanels)) {
    areas.at(view.focus) = {1, room};
    return areas;
  }
  // A line after the other goes to whoever has the fewest and wants more.
  std::array<int, kPanels> wanted{}, given{};
  for (std::size_t i = 0; i < kPanels; ++i) {
    wanted.at(i) =
        kTitles + std::max(static_cast<int>(std::min<std::size_t>(panels.at(i).rows.size(), 10000)), 1);
    given.at(i) = std::min(kLeast, wanted.at(i));
  }
  int left = room;
  for (const int lines : given) left -= lines;
  while (left > 0) {
    std::size_t next = kPanels;
    for (std::size_t i = 0; i < kPanels; ++i)
      if (given.at(i) < wanted.at(i) && (next == kPanels || given.at(i) < given.at(next))) next = i;
    if (next == kPanels) break;
    ++given.at(next);
    --left;
  }
  int line = 1;
  for (std::size_t i = 0; i < kPanels; ++i) {
    areas.at(i) = {line, given.at(i)};
    line += given.at(i);
  }
  return areas;
}

std::vector<PlacedColumn> columns_of(const Panel& panel, int width) {
  std::vector<PlacedColumn> placed;
  int x = 0;
  for (std::size_t i = 0; i < panel.columns.size(); ++i) {
    const auto& column = panel.columns[i];
    if (width < column.from_width || x >= width) continue;
    const int room = column.spreads ? width - x : std::min(column.room, width - x);
    placed.push_back({i, x, room});
    x += room + 1;
  }
  return placed;
}

Wish take_key(View& view, const Panels& panels, const Key& key, int width, int height) {
  view.message.clear();
  if (key.kind == Kind::kRedraw) return {Wish::Kind::kRedraw};
  if (key.kind == Kind::kSuspend) return {Wish::Kind::kSuspend};
  switch (view.mode) {
    case Mode::kSearch:
    case Mode::kFilter:
      take_input(view, panels, key, height);
      return {};
    case Mode::kQuestion:
      return take_answer(view, key);
    case Mode::kHelp:
      view.mode = Mode::kUsual;
      return {};
    case Mode::kUsual:
      break;
  }
  return take_usual(view, panels, key, width, height);
}

void settle(View& view, const Panels& panels, int height) {
  const auto areas = areas_of(view, panels, height);
  for (std::size_t i = 0; i < kPanels; ++i) {
    auto& state = view.panels.at(i);
    const auto rows = rows_of(panels.at(i), state, view.filter);
    const auto seen = static_cast<std::size_t>(areas.at(i).rows());
    auto found = std::ranges::find_if(rows, [&](const Row* row) { return row->key == state.selected; });
    if (found == rows.end()) {
      // What has gone is followed by what stands where it stood.
      found = rows.empty() ? rows.end()
                           : rows.begin() + static_cast<std::ptrdiff_t>(std::min(state.top, rows.size() - 1));
      state.selected = found == rows.end() ? "" : (*found)->key;
    }
    const auto at = static_cast<std::size_t>(found - rows.begin());
    if (at < state.top) state.top = at;
    if (seen > 0 && at >= state.top + seen) state.top = at - seen + 1;
    if (state.top + seen > rows.size()) state.top = rows.size() > seen ? rows.size() - seen : 0;
  }
}

}  // namespace drover::cli::top
