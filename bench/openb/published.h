#pragma once

// What the paper's figures say, as re-derived in bench/data/openb/README.md.

#include <string>

namespace drover::bench {

struct Published {
  const char* list;
  int percent;  ///< of arrival
  const char* policy;
  double mean;  ///< percent of all GPUs, over 10 seeds
  double deviation;
};

inline constexpr Published kPublished[] = {
    {"default", 100, "Random", 86.30, .33},      {"default", 100, "BestFit", 92.86, .14},
    {"default", 100, "FGD", 95.23, .11},         {"default", 130, "Random", 87.47, .32},
    {"default", 130, "BestFit", 93.08, .13},     {"default", 130, "FGD", 95.39, .08},
    {"cpu250", 100, "Random", 80.00, .33},       {"cpu250", 100, "BestFit", 91.21, .25},
    {"cpu250", 100, "FGD", 93.20, .29},          {"gpushare100", 100, "Random", 78.90, .15},
    {"gpushare100", 100, "BestFit", 84.62, .22}, {"gpushare100", 100, "FGD", 86.64, .16},
    {"gpuspec33", 100, "Random", 83.87, .26},    {"gpuspec33", 100, "BestFit", 80.39, .27},
    {"gpuspec33", 100, "FGD", 87.84, .18},       {"gpuspec33", 130, "Random", 86.46, .13},
    {"gpuspec33", 130, "BestFit", 93.09, .15},   {"gpuspec33", 130, "FGD", 94.55, .14},
    {"multigpu20", 100, "Random", 86.92, .52},   {"multigpu20", 100, "BestFit", 93.73, .25},
    {"multigpu20", 100, "FGD", 95.53, .16},
};

}  // namespace drover::bench
