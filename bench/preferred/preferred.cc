// Measures GetPreferredAllocation of `drover kube node`, as the kubelet calls it: over gRPC at a unix socket,
// on a machine of the simulator. Prints "SIZE SECONDS" for each size that is named, the median.
//
//   build/release/bench/preferred PROFILE CALLS SIZE...

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "gpu/discovery.h"
#include "gpu/nvml.h"
#include "gpu/simulation.h"
#include "kube/plugin/service.h"
#include "kube/rpc/channel.h"
#include "kube/rpc/socket_server.h"
#include "protocol/device_plugin.grpc.pb.h"

namespace {

using namespace drover;
using Clock = std::chrono::steady_clock;

constexpr const char* kResource = "nvidia.com/gpu";

Result<gpu::Inventory> inventory_of(const std::string& profile, const std::string& state) {
  DROVER_TRY(const auto places, gpu::simulator_places());
  DROVER_TRY(const auto simulation, gpu::prepare_simulation(profile, state, places));
  return gpu::discover(gpu::Nvml::load(simulation.nvml_library),
                       {.kernel = std::nullopt, .simulation = simulation.profile});
}

Result<double> median_seconds(v1beta1::DevicePlugin::Stub& stub,
                              const v1beta1::PreferredAllocationRequest& request, int calls) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    grpc::ClientContext context;
    kube::give_up_after(context, std::chrono::seconds(60));
    v1beta1::PreferredAllocationResponse answer;
    const auto begin = Clock::now();
    const auto status = stub.GetPreferredAllocation(&context, request, &answer);
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (!status.ok()) return fail(ErrorKind::kInternal, status.error_message());
    const auto wanted = request.container_requests(0).allocation_size();
    if (answer.container_responses(0).deviceids_size() != wanted)
      return fail(ErrorKind::kInternal, fmt::format("not {} GPUs", wanted));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

Status measure(const std::string& profile, int calls, const std::vector<int>& sizes,
               const std::string& folder) {
  kube::Pool pool{kube::PluginConfig{}};
  kube::PoolFacts facts;
  DROVER_TRY(facts.inventory, inventory_of(profile, folder));
  pool.update(facts);
  kube::PluginService service(pool, kResource, [] {});
  DROVER_TRY(const auto server, kube::SocketServer::listen(folder + "/plugin.sock", {service.service()}));
  const auto stub = v1beta1::DevicePlugin::NewStub(kube::connect_to(folder + "/plugin.sock"));
  for (const int size : sizes) {
    v1beta1::PreferredAllocationRequest request;
    auto& container = *request.add_container_requests();
    for (const auto& device : facts.inventory.devices) container.add_available_deviceids(device.uuid);
    container.set_allocation_size(size);
    DROVER_TRY(const auto seconds, median_seconds(*stub, request, calls));
    fmt::print("{} {:.9f}\n", size, seconds);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: preferred PROFILE CALLS SIZE...\n");
    return 2;
  }
  std::vector<int> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  std::string folder = std::filesystem::temp_directory_path() / "drover-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const auto measured = measure(argv[1], std::atoi(argv[2]), sizes, folder);
  std::filesystem::remove_all(folder);
  if (!measured) fmt::print(stderr, "{}\n", to_string(measured.error()));
  return measured ? 0 : 1;
}
