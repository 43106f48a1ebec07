#pragma once

// What is wrong with the simulated GPUs, and what runs on them, as a YAML file that may change at any moment
// (docs/simulator.md is the format). FaultFile is thread safe; the values are immutable.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/file_stamp.h"
#include "sim/profile.h"

namespace drover::sim {

struct EccCounts {
  std::uint64_t corrected = 0;
  std::uint64_t uncorrected = 0;
};

struct RetiredPages {
  std::uint64_t single_bit = 0;
  std::uint64_t double_bit = 0;
  bool pending = false;
};

struct RemappedRows {
  unsigned int corrected = 0;
  unsigned int uncorrected = 0;
  bool pending = false;
  bool failed = false;
};

/// An error that the driver reports, of one part of the GPU in MIG mode or of all of it.
struct Xid {
  std::uint64_t number = 0;
  std::optional<unsigned int> gpu_instance;
  std::optional<unsigned int> compute_instance;
  std::optional<std::size_t> told_at;  ///< position of the GPU whose event sets are told, if not its own's

  bool operator==(const Xid&) const = default;
};

/// In percent.
struct Utilization {
  unsigned int sm = 0;  ///< of a GPU: of all its multiprocessors
  unsigned int memory = 0;
  unsigned int encoder = 0;
  unsigned int decoder = 0;
};

struct Process {
  unsigned int pid = 0;
  std::uint64_t memory_mib = 0;
  std::optional<Utilization> utilization;                      ///< absent: an even share of the GPU's
  std::optional<unsigned int> gpu_instance, compute_instance;  ///< on a GPU in MIG mode
};

/// What went over PCIe, and had to go again.
struct PcieTraffic {
  unsigned int replays = 0;
  unsigned int sent_kb = 0;      ///< in a second
  unsigned int received_kb = 0;  ///< in a second
};

/// Since the driver was loaded, over all links of a GPU that has some.
struct NvlinkTraffic {
  std::uint64_t sent_kib = 0;
  std::uint64_t received_kib = 0;
};

struct GpuFaults {
  std::vector<Xid> xids;  ///< a script of events: a set that waits is told each entry once, in order
  EccCounts ecc_volatile;
  EccCounts ecc_aggregate;
  RetiredPages retired;
  RemappedRows remapped;
  bool lost = false;
  bool absent = false;                           ///< the driver does not list it
  std::optional<unsigned int> recovery_action;   ///< NVML's number; absent when the driver cannot tell
  std::chrono::milliseconds slow{0};             ///< every call on this GPU takes that much longer
  std::map<std::string, int, std::less<>> fail;  ///< function to the code that it returns
  std::optional<int> temperature_c;
  std::optional<int> memory_temperature_c;  ///< absent: the card cannot tell
  std::optional<Utilization> utilization;   ///< absent: it follows from what runs
  PcieTraffic pcie;
  NvlinkTraffic nvlink;
  std::vector<Process> processes;

  /// The code that `function` is to return, if it is to fail. An entry without _vN stands for every revision.
  std::optional<int> failure(std::string_view function) const;
};

/// One entry per GPU of the profile, in its order.
using Faults = std::vector<GpuFaults>;

/// The document's keys name GPUs by position in the profile, UUID or PCI address. All mistakes are in the
/// message.
Result<Faults> decode_faults(const nlohmann::json& document, const Profile& profile, std::string_view what);

/// Follows one file. A file that is missing means no faults; one that is broken leaves the last good state.
class FaultFile {
 public:
  /// `profile` must outlive this. With `verbose`, a broken file is said once on stderr.
  FaultFile(std::filesystem::path file, const Profile& profile, bool verbose);

  /// Looks at the file again when the last look is older than a few milliseconds; never null.
  std::shared_ptr<const Faults> current();

 private:
  void reload();

  const std::filesystem::path file_;
  const Profile* profile_;
  const bool verbose_;
  std::mutex mutex_;
  FileStamp stamp_;
  std::chrono::steady_clock::time_point read_at_;
  std::shared_ptr<const Faults> faults_;
};

}  // namespace drover::sim
