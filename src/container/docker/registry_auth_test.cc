#include "container/docker/registry_auth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"

namespace drover::container::docker {
namespace {

nlohmann::json shown(const image::RegistryLogin& login, const std::string& host) {
  auto text = registry_auth(login, host);
  EXPECT_EQ(text.find_first_of("+/\r\n"), std::string::npos) << text;
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  return nlohmann::json::parse(decode_base64(text).value_or(""));
}

TEST(RegistryAuth, WhoHasNothingShowsNothing) {
  EXPECT_EQ(registry_auth({.password = "alone", .note = "with a helper"}, "localhost:5000"), "");
}

TEST(RegistryAuth, ShowsWhatThereIs) {
  EXPECT_EQ(
      shown({.user = "me", .password = "pass\xc3\xbf>>>???"}, "localhost:5000"),
      nlohmann::json(
          {{"serveraddress", "localhost:5000"}, {"username", "me"}, {"password", "pass\xc3\xbf>>>???"}}));
  EXPECT_EQ(shown({.identity_token = "t"}, "docker.io"),
            nlohmann::json({{"serveraddress", "https://index.docker.io/v1/"}, {"identitytoken", "t"}}));
  EXPECT_EQ(shown({.registry_token = "t"}, "r.example")["registrytoken"], "t");
}

}  // namespace
}  // namespace drover::container::docker
