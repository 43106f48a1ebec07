#pragma once

// SHA-256 digests as OCI writes them: "sha256:" and 64 lower-case hex digits (image-spec, descriptor.md).
// A Sha256 is not thread safe; the functions are.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct evp_md_ctx_st;

namespace drover::image {

class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// The digest of everything so far, "sha256:…". Call it once.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_of(std::string_view bytes);

/// The 64 hex digits of a digest. Anything but a well-formed sha256 digest is refused: the result is safe to
/// use as a file name.
Result<std::string> digest_hex(std::string_view digest);

}  // namespace drover::image
