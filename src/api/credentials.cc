#include "api/credentials.h"

#include <fmt/format.h>

#include "api/secret_file.h"
#include "base/files.h"

namespace drover::api {
namespace {

Result<std::vector<Credential>> create_credentials(const std::string& path) {
  DROVER_TRY(auto secret, random_secret());
  const std::string comment = "# Who may use Drover over TCP: one user:secret a line.\n";
  DROVER_CHECK_OK(write_file(path, comment + "root:" + secret + "\n", 0600));
  return std::vector<Credential>{{"root", std::move(secret)}};
}

}  // namespace

Result<std::vector<Credential>> open_credentials(const std::string& path) {
  DROVER_TRY(const auto text, read_secret_file(path, "The credentials file"));
  if (!text) return create_credentials(path);
  auto credentials = parse_credentials(*text);
  if (!credentials)
    return Failure(context(credentials.error(), fmt::format("Failed to read the credentials in '{}'", path)));
  if (credentials->empty())
    return fail(ErrorKind::kInvalid, fmt::format("The credentials file '{}' names nobody", path),
                "remove it to get a new random secret for root");
  return credentials;
}

}  // namespace drover::api
