#pragma once

// The objects that a measured cluster is made of: bare Nodes with eight GPUs each, their devices, and pods
// that ask for them. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover::bench {

inline constexpr int kGpusOfNode = 8;
inline constexpr int kGpusOfBoard = 4;
inline constexpr const char* kGpu = "nvidia.com/gpu";
inline constexpr const char* kDriver = "gpu.example.com";  ///< of devices, and the name of their class
inline constexpr const char* kRack = "example.com/rack";   ///< label of nodes

/// "node-00042".
std::string node_name(int number);

/// What a node has beside the GPUs, and how they are offered.
struct NodeShape {
  int gpus = kGpusOfNode;
  int milli_cpus = 128'000;
  std::int64_t memory_mib = 1 << 20;
  bool by_limits = true;  ///< as `nvidia.com/gpu`, with their topology; else as devices only
  std::string model = "NVIDIA A100";
  int rack = 0;
};
nlohmann::json node_object(const std::string& name, const NodeShape& shape);
/// The node's devices, as a driver would publish them.
nlohmann::json slice_object(const std::string& node);
/// A class for them; with the name of a resource that limits may name.
nlohmann::json class_object(const std::string& resource);
/// "gpus-3": a claim of so many devices of one board.
std::string template_name(int devices);
nlohmann::json template_object(const std::string& name_space, int devices);

struct PodWish {
  std::string scheduler;
  std::string node = {};   ///< it runs there already
  int gpus = 0;            ///< by limits
  int claimed = 0;         ///< by a claim of template_name()
  std::string group = {};  ///< the PodGroup that it is of
  int milli_cpus = 1000;
  std::int64_t memory_mib = 1024;
};
nlohmann::json pod_object(const std::string& name_space, const std::string& name, const PodWish& shape);
/// Native, of so many pods; all in one domain of the label `topology_key`, unless that is "".
nlohmann::json group_object(const std::string& name_space, const std::string& name, int size,
                            const std::string& topology_key);

}  // namespace drover::bench
