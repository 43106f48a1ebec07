#pragma once

// TLS around a connection to a daemon behind a proxy. What is written to the plain end goes out encrypted,
// and what comes back is read there: whoever speaks over it need not know. A thread carries between the two
// until both sides are done or the tunnel dies, which waits a moment for what was written last. Close the
// plain end before that. At least TLS 1.2; the certificate is checked against the authorities of this
// machine, or those of a file, and its name against the host's.

#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace drover::cli {

class TlsTunnel {
 public:
  /// Shakes hands over a connected TCP socket, for which it takes so long at most; 0: for ever. `host`: the
  /// name or the literal address that the certificate is to be for. `ca_file`: PEM; "" for the machine's
  /// authorities. kUnavailable, and kInvalid for a file without authorities.
  static Result<std::unique_ptr<TlsTunnel>> open(UniqueFd connected, const std::string& host,
                                                 const std::string& ca_file,
                                                 std::chrono::milliseconds patience);
  ~TlsTunnel();
  TlsTunnel(const TlsTunnel&) = delete;
  TlsTunnel& operator=(const TlsTunnel&) = delete;

  /// A connected stream socket; once.
  UniqueFd take_plain_end() { return std::move(plain_end_); }

 private:
  struct Carrier;
  explicit TlsTunnel(std::unique_ptr<Carrier> carrier);

  UniqueFd plain_end_;
  std::unique_ptr<Carrier> carrier_;
};

}  // namespace drover::cli
