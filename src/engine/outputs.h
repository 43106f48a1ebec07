#pragma once

// What the APIs need to tell when, and in which order, a task wrote its output.

#include "container/output_record.h"

namespace drover::engine {

using container::file_tag;
using container::OutputRecord;
using container::OutputRun;
using container::OutputTime;

}  // namespace drover::engine
