// What runs on a GPU: the fault file's `processes` and those that live, all of them compute.

#include "sim/entry/mig_call.h"

using namespace drover::sim;

namespace {

void fill(const RunningProcess& process, nvmlProcessInfo_v1_t& info) {
  info = {process.pid, process.bytes};
}
void fill(const RunningProcess& process, nvmlProcessInfo_v2_t& info) {
  info = {process.pid, process.bytes, process.gpu_instance.value_or(NVML_NO_INSTANCE_ID),
          process.compute_instance.value_or(NVML_NO_INSTANCE_ID)};
}

template <typename Info>
nvmlReturn_t compute_processes(const char* function, nvmlDevice_t device, unsigned int* count,
                               Info* out) noexcept {
  const auto list = [&](const Call& call, auto is_there) {
    std::vector<Info> infos;
    const auto activity = call.activity();
    for (const auto& process : activity.processes)
      if (is_there(process)) fill(process, infos.emplace_back());
    return answer_list(count, out, infos);
  };
  return with_device_or_part(
      function, device,
      [&](const Call& call) { return list(call, [](const RunningProcess&) { return true; }); },
      [&](const Call& call, const MigPart& part) {
        return list(call, [&](const RunningProcess& process) {
          return process.gpu_instance == part.instance.id && process.compute_instance == part.compute.id;
        });
      });
}

nvmlReturn_t no_processes(const char* function, nvmlDevice_t device, unsigned int* count) noexcept {
  return get(function, device, count, [](const Call&) { return 0; });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* processes) {
  return compute_processes(__func__, device, count, processes);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_v2_t* processes) {
  return compute_processes(__func__, device, count, processes);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes) {
  return compute_processes(__func__, device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                   nvmlProcessInfo_v1_t*) {
  return no_processes(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                      nvmlProcessInfo_v2_t*) {
  return no_processes(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                      nvmlProcessInfo_t*) {
  return no_processes(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_v1_t*) {
  return no_processes(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                        nvmlProcessInfo_v2_t*) {
  return no_processes(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                        nvmlProcessInfo_t*) {
  return no_processes(__func__, device, count);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* samples,
                                             unsigned int* count, unsigned long long last_seen) {
  return with_device(__func__, device, [&](const Call& call) {
    if (!tells_load(call)) return NVML_ERROR_NOT_SUPPORTED;
    const auto activity = call.activity();
    if (activity.processes.empty()) return NVML_ERROR_NOT_FOUND;
    std::vector<nvmlProcessUtilizationSample_t> values;
    values.reserve(activity.processes.size());
    for (const auto& [pid, bytes, its, gpu_instance, compute_instance] : activity.processes)
      values.push_back({pid, last_seen + 1, its.sm, its.memory, its.encoder, its.decoder});
    return answer_list(count, samples, values);
  });
}

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return get(__func__, device, mode, [](const Call&) { return NVML_FEATURE_DISABLED; });
}
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int* size) {
  return get(__func__, device, size, [](const Call&) { return 4000; });
}
