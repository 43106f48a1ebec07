#include "credentials_watch.h"

#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "api/credentials.h"

namespace drover {
namespace {

/// Reads once at a time, so that what was read last is what is there.
class Reader : public std::enable_shared_from_this<Reader> {
 public:
  Reader(boost::asio::io_context& context, std::string path, CredentialsPorts ports)
      : context_(context), path_(std::move(path)), ports_(std::move(ports)) {}

  void read() {
    again_ = reading_;
    if (std::exchange(reading_, true)) return;
    ports_.pool([self = shared_from_this()] {
      boost::asio::post(self->context_, [self, read = api::read_credentials(self->path_)]() mutable {
        self->take(std::move(read));
      });
    });
  }

 private:
  void take(Result<std::vector<api::Credential>> read) {
    reading_ = false;
    if (again_) return this->read();
    if (!read) return spdlog::warn("{}; the secrets that were read before stay", to_string(read.error()));
    spdlog::info("The secrets of '{}' were read again", path_);
    ports_.take(std::move(*read));
  }

  boost::asio::io_context& context_;
  std::string path_;
  CredentialsPorts ports_;
  bool reading_ = false;
  bool again_ = false;  ///< it has changed since
};

}  // namespace

std::unique_ptr<FileWatch> watch_credentials(boost::asio::io_context& context, std::string path,
                                             CredentialsPorts ports) {
  const auto reader = std::make_shared<Reader>(context, path, std::move(ports));
  auto watch = FileWatch::start(context, path, [reader] { reader->read(); });
  if (watch) return std::move(*watch);
  spdlog::warn("{}: changes of it count after a restart", to_string(watch.error()));
  return nullptr;
}

}  // namespace drover
