#pragma once

// The messages of the Mesos v1 API, as protoc makes them. A heavy header: for few .cc files.

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#include "mesos/mesos.pb.h"
#include "mesos/scheduler.pb.h"
#pragma clang diagnostic pop

namespace drover::api::mesos::v1 {

using namespace ::mesos::v1;             // NOLINT(google-build-using-namespace)
using namespace ::mesos::v1::scheduler;  // NOLINT(google-build-using-namespace)
using ::mesos::v1::scheduler::Call;
using ::mesos::v1::scheduler::Event;

}  // namespace drover::api::mesos::v1
