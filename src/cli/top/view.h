#pragma once

// What somebody looks at in `drover top`, and what his keys and clicks make of it. Pure: what is to be done
// to the world comes back as a Wish.

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/keys.h"
#include "cli/top/panels.h"

namespace drover::cli::top {

struct PanelView {
  std::optional<std::size_t> sort = {};  ///< column; none: as it comes
  bool reversed = false;
  std::string selected = {};  ///< key of a row
  std::size_t top = 0;        ///< the first row that is seen
};

/// A task that is about to be stopped.
struct Question {
  std::string task, name, user;
};

struct View {
  enum class Mode { kUsual, kSearch, kFilter, kQuestion, kHelp };

  Mode mode = Mode::kUsual;
  std::array<PanelView, kPanels> panels = {};
  std::size_t focus = 0;   ///< the panel that keys are for
  std::string input = {};  ///< what is typed, in kSearch and kFilter
  std::string search = {};
  std::string filter = {};  ///< words, all of which a row has: text, or user:X, task:X, gpu:X
  Question question = {};
  bool paused = false;
  std::chrono::milliseconds interval{1000};
  std::string message = {};  ///< what somebody is told, until his next key
};

inline constexpr std::chrono::milliseconds kShortest{200};
inline constexpr std::chrono::milliseconds kLongestInterval{60'000};

struct Wish {
  enum class Kind { kNone, kQuit, kSuspend, kRedraw, kStop };
  Kind kind = Kind::kNone;
  std::string task = {};  ///< of kStop
  bool force = false;
};

/// The rows of a panel that pass the filter, in their order.
std::vector<const Row*> rows_of(const Panel& panel, const PanelView& view, const std::string& filter);

/// Where things are on the screen.
struct Area {
  int top = 0;     ///< line of the title; the columns' names come below it
  int height = 0;  ///< with these two; 0: it is not seen
  int rows() const { return height > 2 ? height - 2 : 0; }
};
struct PlacedColumn {
  std::size_t index = 0;
  int x = 0, room = 0;
};
/// Of the panels, between the first line and the last. What needs less leaves it to the others; where there
/// is no room for all, the one that keys are for is seen.
std::array<Area, kPanels> areas_of(const View& view, const Panels& panels, int height);
std::vector<PlacedColumn> columns_of(const Panel& panel, int width);

/// Takes a key. `width` and `height` are those of the screen that it was seen on.
Wish take_key(View& view, const Panels& panels, const Key& key, int width, int height);

/// After another look or another size: selections that are gone move on, and what is selected is seen.
void settle(View& view, const Panels& panels, int height);

}  // namespace drover::cli::top
