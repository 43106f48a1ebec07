#pragma once

// Pulls images: manifest, the platform of this machine, then several layers at a time, each unpacked while it
// arrives. A blob that the user may use is not downloaded again; one that somebody else brought with
// credentials is, unless the registry hands the user that very manifest over a connection that proves who it
// is. Who pulls the same image at the same time waits for the first and then finds it. Thread safe. Blocks.

#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/users.h"
#include "image/contents.h"
#include "image/layers.h"
#include "image/pulled/blobs.h"
#include "image/pulled/catalog.h"
#include "image/pulled/keyed_locks.h"
#include "image/pulled/leases.h"
#include "image/pulled/progress.h"
#include "image/registry/session.h"

namespace drover::image {

struct PullLimits {
  std::size_t layers_at_once = 6;
  UnpackLimits unpacking;
  RegistryLimits registry;
};

class Puller {
 public:
  Puller(Blobs& blobs, Catalog& catalog, Leases& leases, const Layers& layers, PlainRegistries plain,
         RegistryCertificates certificates, PullLimits limits)
      : blobs_(blobs),
        catalog_(catalog),
        leases_(leases),
        layers_(layers),
        plain_(std::move(plain)),
        certificates_(std::move(certificates)),
        limits_(limits) {}

  /// Looks it up in the registry, with the credentials of `user`, and brings what is not here yet. When it
  /// returns, the image is in the catalog and unpacked; of a name that stands for several (variants.h), their
  /// index is there, and none of them.
  Result<NamedImage> pull(const RegistryName& name, const User& user, const PullListener& listener,
                          const std::stop_token& stop);

  /// What pull() would find: a manifest, or the index of several. Nothing is kept.
  Result<RegistryDocument> fetch_document(const RegistryName& name, const User& user,
                                          const std::stop_token& stop) const;

 private:
  struct Job;
  Result<RegistryDocument> find_document(RegistrySession& session, HttpClient& client) const;
  std::optional<NamedImage> known_image(const RegistrySession& session, const Descriptor& manifest,
                                        uid_t uid) const;
  /// The bytes of all its blobs.
  Result<std::uint64_t> bring(Job& job, HttpClient& client, const RegistryDocument& manifest);
  Status bring_layers(Job& job);
  Status bring_layer(Job& job, HttpClient& client, std::size_t index);
  Status download(Job& job, HttpClient& client, std::size_t index);
  Status download_once(Job& job, HttpClient& client, std::size_t index);
  Status check_space(std::uint64_t wanted) const;

  Blobs& blobs_;
  Catalog& catalog_;
  Leases& leases_;
  const Layers& layers_;
  PlainRegistries plain_;
  RegistryCertificates certificates_;
  PullLimits limits_;
  KeyedLocks locks_;
};

}  // namespace drover::image
