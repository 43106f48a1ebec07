#pragma once

// The fields of a request that say what is brought to a task: files, volumes, devices, ports. Pure.
//
//   fetch     ["https://…", {"uri", "extract", "executable", "cache", "output_file"}, …]
//   volumes   [{"container_path", "host_path", "read_only"}, …]
//   devices   ["vendor.com/class=name", …]
//   network   {"mode": "host" | "bridge", "ports": [{"name", "protocol": "tcp" | "udp" | "both",
//             "container_port", "host_port", "labels"}, …]}

#include "base/decode.h"
#include "workload/task.h"

namespace drover::workload {

inline constexpr std::size_t kMaxFetch = 256;
inline constexpr std::size_t kMaxVolumes = 64;
inline constexpr std::size_t kMaxPorts = 100;
inline constexpr std::size_t kMaxDevices = 64;

/// Reads the fields into `task`; what is absent stays as it is there. Every mistake is recorded.
void decode_attachments(Decoder& decoder, Task& task);

}  // namespace drover::workload
