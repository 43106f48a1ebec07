#include "cli/tls_tunnel.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <thread>

namespace drover::cli {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;

struct TlsTunnel::Carrier {
  explicit Carrier(asio::ssl::context chosen) : trust(std::move(chosen)) {}

  asio::io_context context{1};
  asio::ssl::context trust;
  asio::ssl::stream<Socket> secure{context, trust};
  Socket plain{context};
  asio::steady_timer last_moment{context};
  std::thread thread;
};

namespace {

constexpr auto kCarried = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kLastMoment{2};

Result<asio::ssl::context> context_of(const TlsTrust& trust) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer);
  error_code error;
  if (!trust.authorities.empty())
    context.add_certificate_authority(asio::buffer(trust.authorities), error);
  else if (trust.file.empty())
    context.set_default_verify_paths(error);
  else
    context.load_verify_file(trust.file, error);
  if (error && trust.authorities.empty())
    return fail(
        ErrorKind::kInvalid,
        fmt::format("Failed to read certificate authorities from '{}': {}", trust.file, error.message()),
        "--ca-file names a file with certificates in PEM form");
  if (!error && !trust.certificate.empty())
    context.use_certificate_chain(asio::buffer(trust.certificate), error);
  if (!error && !trust.key.empty())
    context.use_private_key(asio::buffer(trust.key), asio::ssl::context::pem, error);
  if (error)
    return fail(ErrorKind::kInvalid,
                fmt::format("The certificates of the kubeconfig cannot be used: {}", error.message()),
                "they are to be in PEM form");
  return context;
}

/// Whom the certificate must be for.
void expect(SSL* ssl, const std::string& host) {
  error_code is_name;
  asio::ip::make_address(host, is_name);
  if (!is_name) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
    return;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  SSL_set1_host(ssl, host.c_str());
  SSL_set_tlsext_host_name(ssl, host.c_str());
}

/// In the words of whoever has to mend it.
Error handshake_error(SSL* ssl, const std::string& host, const TlsTrust& trust, const error_code& error) {
  const auto found = SSL_get_verify_result(ssl);
  const auto of_certificate = [&](std::string what, std::string hint) {
    return Error{ErrorKind::kUnavailable, fmt::format("The certificate of '{}' {}", host, what),
                 std::move(hint), ""};
  };
  switch (found) {
    case X509_V_OK:
      return {ErrorKind::kUnavailable,
              fmt::format("Failed to agree on TLS with '{}': {}", host, error.message()),
              "is it a TLS proxy that listens there? The daemon itself speaks http", ""};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return of_certificate("is for another host", "name the daemon as its certificate does");
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return of_certificate("has expired", "it is to be renewed, or the clock of this machine to be set");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return of_certificate("is not valid yet", "is the clock of this machine right?");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return of_certificate(
          "comes from an authority that is not trusted here",
          trust.authorities.empty()
              ? "name the file with the authority's certificate: --ca-file FILE"
              : "the certificate-authority of the kubeconfig must be the one that signed it");
    default:
      return of_certificate(fmt::format("is not valid: {}", X509_verify_cert_error_string(found)), "");
  }
}

template <typename From, typename To>
asio::awaitable<void> carry(From& from, To& to) {
  std::array<char, 32768> piece;
  while (true) {
    const auto [ended, count] = co_await from.async_read_some(asio::buffer(piece), kCarried);
    if (ended) co_return;
    const auto [failed, written] = co_await asio::async_write(to, asio::buffer(piece, count), kCarried);
    if (failed) co_return;
  }
}

/// Nobody is kept waiting for longer by a peer that takes nothing any more.
template <typename Carrier>
void end_soon(Carrier& carrier) {
  carrier.last_moment.expires_after(kLastMoment);
  carrier.last_moment.async_wait([&carrier](const auto& error) {
    if (!error) carrier.context.stop();
  });
}

template <typename Carrier>
asio::awaitable<void> carry_out(Carrier& carrier) {
  co_await carry(carrier.plain, carrier.secure);
  end_soon(carrier);
  co_await carrier.secure.async_shutdown(kCarried);
  carrier.context.stop();
}

/// The answers of a daemon say how long they are: one that was cut off is noticed by whoever reads it.
template <typename Carrier>
asio::awaitable<void> carry_in(Carrier& carrier) {
  co_await carry(carrier.secure, carrier.plain);
  error_code gone;
  carrier.plain.shutdown(Socket::shutdown_send, gone);
}

/// No signal is for it: whoever opened the tunnel waits for some in his own way.
std::thread without_signals(std::function<void()> work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Result<std::unique_ptr<TlsTunnel>> TlsTunnel::open(UniqueFd connected, const std::string& host,
                                                   const TlsTrust& trust,
                                                   std::chrono::milliseconds patience) {
  DROVER_TRY(auto context, context_of(trust));
  auto carrier = std::make_unique<Carrier>(std::move(context));
  auto& secure = carrier->secure;
  int family = 0;
  socklen_t size = sizeof family;
  ::getsockopt(connected.get(), SOL_SOCKET, SO_DOMAIN, &family, &size);
  secure.next_layer().assign({family, 0}, connected.release());
  expect(secure.native_handle(), host);
  std::optional<error_code> shaken;
  secure.async_handshake(asio::ssl::stream_base::client, [&](const auto& error) { shaken = error; });
  if (patience.count() == 0)
    carrier->context.run();
  else
    carrier->context.run_for(patience);
  if (!shaken) {
    secure.next_layer().close();
    carrier->context.run();
    shaken = asio::error::timed_out;
  }
  if (*shaken) return Failure(handshake_error(secure.native_handle(), host, trust, *shaken));
  carrier->context.restart();

  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("Failed to make a socket", errno);
  carrier->plain.assign({AF_UNIX, 0}, ends[0]);
  std::unique_ptr<TlsTunnel> tunnel(new TlsTunnel(std::move(carrier)));
  tunnel->plain_end_.reset(ends[1]);
  return tunnel;
}

TlsTunnel::TlsTunnel(std::unique_ptr<Carrier> carrier) : carrier_(std::move(carrier)) {
  asio::co_spawn(carrier_->context, carry_out(*carrier_), asio::detached);
  asio::co_spawn(carrier_->context, carry_in(*carrier_), asio::detached);
  carrier_->thread = without_signals([this] { carrier_->context.run(); });
}

TlsTunnel::~TlsTunnel() {
  plain_end_.reset();
  asio::post(carrier_->context, [this] { end_soon(*carrier_); });
  carrier_->thread.join();
}

}  // namespace drover::cli
