#pragma once

// TLS around a connection to a daemon behind a proxy. What is written to the plain end goes out encrypted,
// and what comes back is read there: whoever speaks over it need not know. A thread carries between the two
// until both sides are done or the tunnel dies, which waits a moment for what was written last. Close the
// plain end before that. At least TLS 1.2; the server's certificate is checked against the authorities of
// this machine, or those that are given, and its name against the host's.

#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace drover::cli {

struct TlsTrust {
  std::string file;         ///< of authorities, as PEM; "" for the machine's
  std::string authorities;  ///< the same, as text: then it alone counts
  std::string certificate;  ///< PEM, that is shown to the server, with its key; "": none
  std::string key;
};

class TlsTunnel {
 public:
  /// Shakes hands over a connected TCP socket, for which it takes so long at most; 0: for ever. `host`: the
  /// name or the literal address that the certificate is to be for. kUnavailable, and kInvalid for what holds
  /// no certificates or keys.
  static Result<std::unique_ptr<TlsTunnel>> open(UniqueFd connected, const std::string& host,
                                                 const TlsTrust& trust, std::chrono::milliseconds patience);
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
