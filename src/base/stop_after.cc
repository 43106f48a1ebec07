#include "base/stop_after.h"

#include "base/pause.h"

namespace drover {

StopAfter::StopAfter(std::chrono::milliseconds limit, std::stop_token other)
    : other_(std::move(other), Request{stop_}), clock_([this, limit](const std::stop_token& done) {
        if (pause(limit, done)) stop_.request_stop();
      }) {}

}  // namespace drover
