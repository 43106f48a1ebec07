#pragma once

// A frame of `drover top`: what is looked at, drawn into cells. Pure.

#include <string>

#include "cli/top/panels.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"

namespace drover::cli::top {

/// What stands above and below the panels.
struct Surroundings {
  std::string machine = {};  ///< machine_words()
  std::string clock = {};    ///< "13:05:09", of the look that is shown
  std::string trouble = {};  ///< why there is no newer look; "" when there is none
};

Screen draw(const View& view, const Panels& panels, const Surroundings& around, int width, int height,
            bool unicode);
/// All rows, without what is only for somebody at a terminal.
Screen draw_once(const Panels& panels, const Surroundings& around, int width, bool unicode);

}  // namespace drover::cli::top
