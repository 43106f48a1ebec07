#pragma once

// Certificates for single registries, in folders as Docker, containerd and Podman have them
// (https://docs.docker.com/engine/security/certificates/): FOLDER/HOST[:PORT]/ with authorities in *.crt, and
// a certificate to show in NAME.cert with its key in NAME.key. Read each time, so changes count at once.
// Thread safe.

#include <memory>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"
#include "image/registry/endpoint.h"

namespace drover::image {

class RegistryCertificates {
 public:
  /// The first folder that has something for a server counts.
  explicit RegistryCertificates(std::vector<std::string> folders = {}) : folders_(std::move(folders)) {}

  /// What counts at this server, and at no other; nullptr when there is nothing.
  Result<std::shared_ptr<const HttpTrust>> find(const Origin& server) const;
  /// What to do about a server that is not trusted.
  std::string remedy(const Origin& server) const;

 private:
  std::vector<std::string> folders_;
};

}  // namespace drover::image
