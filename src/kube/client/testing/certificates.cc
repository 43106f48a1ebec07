#include "kube/client/testing/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>

namespace drover::kube::testing {
namespace {

constexpr long kDay = 24 * 3600;

std::string written(const std::function<int(BIO*)>& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  write(bio.get());
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value), X509_EXTENSION_free);
  X509_add_ext(certificate, extension.get(), -1);
}

Identity make(const std::string& name, const Identity* authority) {
  static long serial = 0;
  const KeyPointer key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const CertificatePointer certificate(X509_new(), X509_free);
  auto* made = certificate.get();
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(made), kDay);
  X509_set_pubkey(made, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  add_extension(made, NID_basic_constraints, authority == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (authority == nullptr) {
    X509_set_issuer_name(made, X509_get_subject_name(made));
    X509_sign(made, key.get(), EVP_sha256());
  } else {
    add_extension(made, NID_subject_alt_name, "IP:127.0.0.1");
    X509_set_issuer_name(made, X509_get_subject_name(read_certificate(authority->certificate).get()));
    X509_sign(made, read_key(authority->key).get(), EVP_sha256());
  }
  return {written([&](BIO* bio) { return PEM_write_bio_X509(bio, made); }), written([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

template <typename Object, typename Read, typename Free>
std::unique_ptr<Object, Free> read_pem(const std::string& pem, Read read, Free free) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  return {read(bio.get(), nullptr, nullptr, nullptr), free};
}

}  // namespace

Identity make_authority(const std::string& name) {
  return make(name, nullptr);
}

Identity make_identity(const std::string& name, const Identity& authority) {
  return make(name, &authority);
}

CertificatePointer read_certificate(const std::string& pem) {
  return read_pem<X509>(pem, PEM_read_bio_X509, &X509_free);
}

KeyPointer read_key(const std::string& pem) {
  return read_pem<EVP_PKEY>(pem, PEM_read_bio_PrivateKey, &EVP_PKEY_free);
}

}  // namespace drover::kube::testing
