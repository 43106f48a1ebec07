#pragma once

// Certificates for tests, made on the spot.

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace drover::kube::testing {

/// A certificate and its key, as PEM.
struct Identity {
  std::string certificate;
  std::string key;
};

/// An authority of this name, signed by itself.
Identity make_authority(const std::string& name);
/// Of a server at 127.0.0.1, or of a client of this name.
Identity make_identity(const std::string& name, const Identity& authority);

using CertificatePointer = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyPointer = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
CertificatePointer read_certificate(const std::string& pem);
KeyPointer read_key(const std::string& pem);

}  // namespace drover::kube::testing
