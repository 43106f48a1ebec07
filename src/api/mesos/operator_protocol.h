#pragma once

// The messages of the operator API, as protoc makes them: v1::master and v1::agent. A heavy header, too.

#include "api/mesos/protocol.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#include "mesos/agent.pb.h"
#include "mesos/master.pb.h"
#pragma clang diagnostic pop
