#pragma once

// A small HTTP server on TCP for pages that everybody may read who can reach it: metrics, and whether the
// program lives. It only answers GET and HEAD, reads no bodies, and knows no callers; the daemon's API has a
// server of its own (api/server.h). Two threads: one for the connections, one that makes pages, one at a
// time, so that a page which takes long holds up no other connection. Thread safe.
//
//   DROVER_TRY(const auto server, PageServer::start({"127.0.0.1", 9400}, {{"/metrics", {type, make}}}));

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/listen.h"

namespace drover::http {

struct Page {
  std::string content_type;
  /// Called on the thread for pages, or where it is `instant` on the one for connections. An error is
  /// answered with 503 and its sentence.
  std::function<Result<std::string>()> make;
  bool instant = false;
};

struct PageLimits {
  std::size_t connections = 64;                                    ///< further ones wait
  std::chrono::milliseconds idle_time = std::chrono::seconds(30);  ///< for a request, or the next one
  std::chrono::milliseconds write_time = std::chrono::seconds(10);
};

class PageServer {
 public:
  /// `pages` are by path; a query behind it is ignored. Listens when it returns.
  static Result<std::unique_ptr<PageServer>> start(const ListenAddress& address,
                                                   std::map<std::string, Page> pages,
                                                   const PageLimits& limits = {});
  /// Closes all connections; waits for a page that is being made.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// With the port that the kernel chose, when it was asked to.
  ListenAddress address() const;

 private:
  struct Parts;
  explicit PageServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace drover::http
