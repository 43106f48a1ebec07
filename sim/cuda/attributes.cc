#include "sim/cuda/attributes.h"

namespace drover::sim::cuda {
namespace {

constexpr int kAttributes = 162;
constexpr int kKib = 1024;
constexpr int kHuge = 0x7FFFFFFF;

/// Shared memory of a multiprocessor in KiB, by compute capability.
int shared_kib(int capability) {
  switch (capability) {
    case 37:
      return 112;
    case 35:
    case 30:
      return 48;
    case 52:
    case 61:
    case 70:
      return 96;
    case 60:
    case 62:
    case 53:
    case 50:
    case 75:
      return 64;
    case 80:
    case 87:
      return 164;
    case 86:
    case 89:
      return 100;
    default:
      return capability >= 90 ? 228 : 48;
  }
}

int l2_mib(int capability) {
  if (capability < 60) return 1;
  if (capability < 80) return 6;
  return capability < 90 ? 40 : 50;
}

int threads_of_a_multiprocessor(int capability) {
  if (capability == 75) return 1024;
  return capability == 86 || capability == 89 ? 1536 : 2048;
}

int most_shared_of_a_block(int capability) {
  const int all = shared_kib(capability);
  if (capability < 70) return 48;
  return capability >= 80 ? all - 1 : all;
}

/// Limits of textures and surfaces, attributes 21 to 77: those of all cards here are of one order.
int extent(int attribute) {
  switch (attribute) {
    case 24:
    case 25:
    case 26:
    case 58:
    case 59:
    case 60:
      return 16384;
    case 29:
    case 43:
    case 54:
    case 62:
    case 65:
    case 68:
      return 2048;
    case 69:
      return 1 << 28;
    default:
      return 32768;
  }
}

}  // namespace

std::optional<int> device_attribute(const Gpu& gpu, int attribute) {
  const auto& model = gpu.model;
  const int capability = 10 * model.compute_major + model.compute_minor;
  const auto since = [&](int first) { return capability >= first ? 1 : 0; };
  switch (attribute) {
    case 1:  // MAX_THREADS_PER_BLOCK
    case 2:  // MAX_BLOCK_DIM_X
    case 3:  // MAX_BLOCK_DIM_Y
      return 1024;
    case 4:  // MAX_BLOCK_DIM_Z
      return 64;
    case 5:   // MAX_GRID_DIM_X
    case 11:  // MAX_PITCH
      return kHuge;
    case 6:  // MAX_GRID_DIM_Y
    case 7:  // MAX_GRID_DIM_Z
      return 65535;
    case 8:  // MAX_SHARED_MEMORY_PER_BLOCK
      return 48 * kKib;
    case 9:  // TOTAL_CONSTANT_MEMORY
      return 64 * kKib;
    case 10:  // WARP_SIZE
    case 51:  // TEXTURE_PITCH_ALIGNMENT
      return 32;
    case 12:  // MAX_REGISTERS_PER_BLOCK
      return 65536;
    case 82:  // MAX_REGISTERS_PER_MULTIPROCESSOR
      return capability == 37 ? 131072 : 65536;
    case 13:  // CLOCK_RATE, in kHz
      return model.clock_graphics_mhz * 1000;
    case 14:  // TEXTURE_ALIGNMENT
    case 30:  // SURFACE_ALIGNMENT
      return 512;
    case 15:   // GPU_OVERLAP
    case 19:   // CAN_MAP_HOST_MEMORY
    case 31:   // CONCURRENT_KERNELS
    case 41:   // UNIFIED_ADDRESSING
    case 44:   // CAN_TEX2D_GATHER
    case 78:   // STREAM_PRIORITIES_SUPPORTED
    case 79:   // GLOBAL_L1_CACHE_SUPPORTED
    case 80:   // LOCAL_L1_CACHE_SUPPORTED
    case 83:   // MANAGED_MEMORY
    case 99:   // HOST_REGISTER_SUPPORTED
    case 102:  // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    case 115:  // MEMORY_POOLS_SUPPORTED
    case 126:  // MEM_SYNC_DOMAIN_COUNT
      return 1;
    case 16:  // MULTIPROCESSOR_COUNT
      return model.multiprocessors;
    case 32:  // ECC_ENABLED
      return model.ecc.value_or(false) ? 1 : 0;
    case 33:  // PCI_BUS_ID
      return static_cast<int>(gpu.pci.bus);
    case 34:  // PCI_DEVICE_ID
      return static_cast<int>(gpu.pci.device);
    case 50:  // PCI_DOMAIN_ID
      return static_cast<int>(gpu.pci.domain);
    case 36:  // MEMORY_CLOCK_RATE, in kHz
      return model.clock_memory_mhz * 1000;
    case 37:  // GLOBAL_MEMORY_BUS_WIDTH
      return model.memory_bus_bits;
    case 38:  // L2_CACHE_SIZE
      return l2_mib(capability) << 20;
    case 39:  // MAX_THREADS_PER_MULTIPROCESSOR
      return threads_of_a_multiprocessor(capability);
    case 40:  // ASYNC_ENGINE_COUNT
      return 2;
    case 75:  // COMPUTE_CAPABILITY_MAJOR
      return model.compute_major;
    case 76:  // COMPUTE_CAPABILITY_MINOR
      return model.compute_minor;
    case 81:  // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
      return shared_kib(capability) * kKib;
    case 84:  // MULTI_GPU_BOARD
      return gpu.multi_gpu_board ? 1 : 0;
    case 85:  // MULTI_GPU_BOARD_GROUP_ID
      return gpu.board;
    case 87:  // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
      return capability == 60 || capability == 70 || capability == 80 || capability == 90 ? 2 : 32;
    case 89:  // CONCURRENT_MANAGED_ACCESS
    case 90:  // COMPUTE_PREEMPTION_SUPPORTED
    case 95:  // COOPERATIVE_LAUNCH
      return since(60);
    case 97:  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      return most_shared_of_a_block(capability) * kKib;
    case 106:  // MAX_BLOCKS_PER_MULTIPROCESSOR
      return capability == 80 || capability >= 90 ? 32 : 16;
    case 111:  // RESERVED_SHARED_MEMORY_PER_BLOCK
      return since(80) * kKib;
    case 131:  // NUMA_ID
      return -1;
    case 134:  // HOST_NUMA_ID
      return gpu.numa;
    case 139:  // GPU_PCI_DEVICE_ID
      return static_cast<int>(model.pci_device << 16 | 0x10DE);
    case 140:  // GPU_PCI_SUBSYSTEM_ID
      return static_cast<int>(model.pci_subsystem << 16 | 0x10DE);
    default:
      break;
  }
  if (attribute >= 21 && attribute <= 77) return extent(attribute);
  if (attribute >= 1 && attribute < kAttributes) return 0;
  return std::nullopt;
}

}  // namespace drover::sim::cuda
