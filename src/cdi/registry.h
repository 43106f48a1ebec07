#pragma once

// The CDI specifications that are installed on a machine: every *.json and *.yaml of the folders. Of two
// folders that know one device the later one counts; a device that two files of one folder tell of is in
// conflict, and nobody gets it. A file that cannot be read is a problem of its own and hides no other.
// Specifications come and go while the daemon runs. Blocks; thread safe as values are.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cdi/names.h"
#include "cdi/specification.h"

namespace drover::cdi {

class Registry {
 public:
  /// A folder that is not there holds nothing.
  static Registry read(const std::vector<std::string>& folders);

  struct Entry {
    std::string file;
    std::vector<std::string> conflicts;  ///< other files of the same folder with the same device
  };
  /// By name.
  const std::map<DeviceName, Entry>& devices() const { return devices_; }
  /// Files that were left out, and why; sorted.
  const std::vector<Error>& problems() const { return problems_; }

  /// What the devices do to a container: those of their files once each, then their own, in the order of the
  /// names. kNotFound with the names that there are, kConflict for one in conflict.
  Result<Edits> edits_of(const std::vector<DeviceName>& names) const;

 private:
  void read_folder(const std::string& folder);
  Result<Edits> device_edits(const DeviceName& name) const;

  std::map<std::string, Specification> files_;  ///< by path
  std::map<DeviceName, Entry> devices_;
  std::vector<Error> problems_;
};

/// A registry that is read again when a file of the folders has changed. A look at all files is good for
/// `freshness`: the members of a gang need no look each. What is not found is looked for anew in any case.
/// Blocks; thread safe.
class KeptRegistry {
 public:
  explicit KeptRegistry(std::vector<std::string> folders,
                        std::chrono::milliseconds freshness = std::chrono::milliseconds(100))
      : folders_(std::move(folders)), freshness_(freshness) {}

  /// As Registry::edits_of().
  Result<Edits> edits_of(const std::vector<DeviceName>& names);
  std::shared_ptr<const Registry> registry();

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<const Registry> refresh();

  const std::vector<std::string> folders_;
  const std::chrono::milliseconds freshness_;
  std::mutex mutex_;
  std::optional<std::string> seen_;  ///< the files, as they were when they were read
  Clock::time_point refreshed_at_{};
  std::shared_ptr<const Registry> registry_;
};

/// Fills in what a node leaves to the host: its type and numbers. kNotFound when it is not there.
Status complete_device_nodes(Edits& edits);

}  // namespace drover::cdi
