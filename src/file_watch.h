#pragma once

// Tells when one file is written, replaced or removed. Used on the strand of its context; not thread safe.

#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace drover {

class FileWatch {
 public:
  /// From now on `changed` is called, once for several changes that come together. Whoever writes the file in
  /// several pieces is heard of when he closes it. Fails where the kernel watches no more for this user.
  static Result<std::unique_ptr<FileWatch>> start(boost::asio::io_context& context,
                                                  const std::filesystem::path& file,
                                                  std::function<void()> changed);

 private:
  FileWatch(boost::asio::io_context& context, UniqueFd inotify, std::string name,
            std::function<void()> changed);
  void wait();
  bool has_changed();

  boost::asio::posix::stream_descriptor inotify_;
  std::string name_;  ///< in its folder: another file may come in its place
  std::function<void()> changed_;
};

}  // namespace drover
