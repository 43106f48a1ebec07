#pragma once

// What a client asks a server for (http/client.h).

#include <map>
#include <string>

namespace drover::http {

struct Request {
  std::string method = "GET";
  std::string target = "/";  ///< path and query
  std::string host = {};     ///< as the server is called: "gpu1:8080"
  std::map<std::string, std::string> headers = {{"User-Agent", "drover"}};
  std::string body = {};     ///< JSON; "" for none
  std::string upgrade = {};  ///< a protocol that is spoken after the answer's head; "" for HTTP alone
};

/// As HTTP/1.1 sends it. The connection is for this request alone.
std::string to_text(const Request& request);

}  // namespace drover::http
