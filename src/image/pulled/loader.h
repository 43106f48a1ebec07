#pragma once

// Takes images into the catalog that lie in files. They are for who brought them, unless that is root: a name
// that one user gives an image must not become another's. Thread safe. Blocks.

#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/users.h"
#include "image/layers.h"
#include "image/pulled/blobs.h"
#include "image/pulled/catalog.h"
#include "image/pulled/keyed_locks.h"
#include "image/pulled/leases.h"
#include "image/pulled/progress.h"
#include "image/source.h"

namespace drover::image {

class Loader {
 public:
  Loader(Blobs& blobs, Catalog& catalog, Leases& leases, const Layers& layers, const UnpackLimits& limits)
      : blobs_(blobs), catalog_(catalog), leases_(leases), layers_(layers), limits_(limits) {}

  /// Copies and unpacks what is not here yet.
  Result<NamedImage> load(const Source& source, const RegistryName& name, const User& user,
                          const PullListener& listener, const std::stop_token& stop);

 private:
  struct StoredLayer {
    std::string digest;
    std::uint64_t size = 0;
  };
  Result<StoredLayer> load_layer(const Source& source, const LayerFile& layer, const std::string& scope,
                                 uid_t uid, const std::stop_token& stop, Allowance& allowance);
  Result<StoredLayer> copy(const Source& source, const LayerFile& layer, const std::string& scope,
                           const std::stop_token& stop);

  Blobs& blobs_;
  Catalog& catalog_;
  Leases& leases_;
  const Layers& layers_;
  const UnpackLimits limits_;
  KeyedLocks locks_;
};

}  // namespace drover::image
