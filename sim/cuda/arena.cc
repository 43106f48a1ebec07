#include "sim/cuda/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace drover::sim::cuda {
namespace {

constexpr std::uint64_t kFileSize = std::uint64_t{1} << 50;

void* as_pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

std::optional<std::uint64_t> Arena::take(std::uint64_t size) {
  const std::scoped_lock lock(mutex_);
  if (descriptor_ < 0) {
    const int fd = ::memfd_create("gpu-memory", MFD_CLOEXEC);
    if (fd < 0) return std::nullopt;
    if (::ftruncate(fd, static_cast<off_t>(kFileSize)) != 0) {
      ::close(fd);
      return std::nullopt;
    }
    descriptor_ = fd;
  }
  if (auto found = free_.find(size); found != free_.end()) {
    const auto offset = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) free_.erase(found);
    return offset;
  }
  if (size > kFileSize - next_) return std::nullopt;
  next_ += size;
  return next_ - size;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t size) {
  const std::scoped_lock lock(mutex_);
  ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(size));
  free_[size].push_back(offset);
}

std::uint64_t reserve_addresses(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (size == 0 || size > kFileSize) return 0;
  if (wanted != 0 && wanted % alignment == 0) {
    void* const at = ::mmap(as_pointer(wanted), size, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != MAP_FAILED) return wanted;
  }
  void* const at = ::mmap(nullptr, size + alignment, PROT_NONE, kFlags, -1, 0);
  if (at == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  const auto aligned = (begin + alignment - 1) / alignment * alignment;
  if (aligned > begin) ::munmap(at, aligned - begin);
  if (const auto rest = begin + alignment - aligned; rest > 0) ::munmap(as_pointer(aligned + size), rest);
  return aligned;
}

void free_addresses(std::uint64_t address, std::uint64_t size) {
  ::munmap(as_pointer(address), size);
}

bool map_at(std::uint64_t address, std::uint64_t size, int descriptor, std::uint64_t offset) {
  return ::mmap(as_pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                descriptor, static_cast<off_t>(offset)) != MAP_FAILED;
}

bool unmap_at(std::uint64_t address, std::uint64_t size) {
  return ::mmap(as_pointer(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                -1, 0) != MAP_FAILED;
}

}  // namespace drover::sim::cuda
