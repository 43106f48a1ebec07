#pragma once

// What stands before a daemon and wants to know by itself who comes, as the API server of Kubernetes does
// that hands requests on to a Service. A value; it holds secrets.

#include <string>

namespace drover::cli {

struct Gateway {
  std::string url;          ///< "https://HOST:PORT", perhaps with a path
  std::string token;        ///< shown to it as a bearer; "": none
  std::string authorities;  ///< PEM, the only ones that are trusted; "": those of this machine
  std::string certificate;  ///< PEM, shown to it, with its key; "": none
  std::string key;
  std::string path;  ///< of the daemon there, before each target: "/api/v1/…/proxy"
};

}  // namespace drover::cli
