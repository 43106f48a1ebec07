#pragma once

// CDI specifications of one maker, a file for each of its things, where container engines look for them.
// Every write is whole or absent, and durable when it returns. Blocks. Not thread safe.

#include <map>
#include <string>
#include <utility>

#include "base/result.h"

namespace drover::cdi {

class SpecificationFolder {
 public:
  /// `prefix` is of the files' names: "k8s.gpu.nvidia.com-claim_". The folder is made when something is
  /// written. Whoever passes names has looked at them: they are parts of paths.
  SpecificationFolder(std::string folder, std::string prefix)
      : folder_(std::move(folder)), prefix_(std::move(prefix)) {}

  /// What somebody who was killed had begun to write. For the one that takes his place.
  Status remove_unfinished() const;
  /// Those that are there, by name; "" for what cannot be read.
  Result<std::map<std::string, std::string>> read() const;
  /// A file that says this already stays.
  Status write(const std::string& name, const std::string& text) const;
  /// One that is not there is fine.
  Status remove(const std::string& name) const;

 private:
  std::string folder_, prefix_;
};

}  // namespace drover::cdi
