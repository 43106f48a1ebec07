#include <fmt/format.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/base64.h"
#include "base/decode.h"
#include "base/yaml.h"
#include "kube/client/config.h"

namespace drover::kube {
namespace {

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

/// Why it is none, or "".
std::string trouble_of_url(const std::string& text) {
  const auto url = boost::urls::parse_uri(text);
  if (!url || url->host().empty() || (url->scheme() != "https" && url->scheme() != "http"))
    return "it must be a URL such as 'https://10.0.0.1:6443'";
  if (url->has_userinfo() || url->has_query() || url->has_fragment())
    return "it must have no user, query or fragment";
  const bool is_address = url->host_type() != boost::urls::host_type::name;
  const bool is_name = std::string_view(url->encoded_host()) == "localhost";
  if (url->scheme() == "http" && !((is_address || is_name) && is_this_machine(url->encoded_host())))
    return "it must have https: requests and credentials would go over the network for all to read";
  return "";
}

/// Reads one kubeconfig; mistakes are gathered in `errors`.
class KubeconfigReader {
 public:
  KubeconfigReader(const nlohmann::json& document, std::string folder, std::vector<Error>& errors)
      : root_(document, errors), folder_(std::move(folder)) {}

  ServerConfig read(const std::string& wanted) {
    ServerConfig config;
    const auto current = root_.string("current-context").value_or("");
    auto context = wanted.empty() ? entry("contexts", "context", current, "current-context")
                                  : entry("contexts", "context", wanted, "contexts");
    if (!context) return config;
    config.name_space = context->string("namespace").value_or("default");
    const auto cluster_name = context->string("cluster").value_or("");
    const auto user_name = context->string("user").value_or("");
    if (auto cluster = entry("clusters", "cluster", cluster_name, "contexts")) read_cluster(*cluster, config);
    if (user_name.empty()) return config;
    if (auto user = entry("users", "user", user_name, "contexts")) read_user(*user, config);
    return config;
  }

 private:
  /// What is named so in a list of {name, <field>: {…}}. `asked` is the field that asks for it.
  std::optional<Decoder> entry(const std::string& list, const std::string& field, const std::string& name,
                               const std::string& asked) {
    for (auto& item : root_.objects(list)) {
      if (item.string("name") != name) continue;
      if (item.value(field) == nullptr) item.mistake(field, "is missing");
      return item.object(field);
    }
    root_.mistake(asked, name.empty() ? fmt::format("it names no {}", field)
                                      : fmt::format("there is no {} '{}'", field, name));
    return std::nullopt;
  }

  void read_cluster(Decoder& cluster, ServerConfig& config) {
    config.url = cluster.string("server").value_or("");
    while (config.url.ends_with('/')) config.url.pop_back();
    if (const auto trouble = trouble_of_url(config.url); !trouble.empty()) cluster.mistake("server", trouble);
    config.authorities = secret(cluster, "certificate-authority", "certificate-authority-data");
    if (cluster.boolean("insecure-skip-tls-verify").value_or(false))
      cluster.mistake("insecure-skip-tls-verify",
                      "it is refused: anybody between could answer as the API server",
                      "name the cluster's authority as certificate-authority");
    refuse(cluster, "tls-server-name", "use the server's own name in 'server'");
    refuse(cluster, "proxy-url", "set HTTPS_PROXY");
  }

  void read_user(Decoder& user, ServerConfig& config) {
    config.certificate = secret(user, "client-certificate", "client-certificate-data");
    config.key = secret(user, "client-key", "client-key-data");
    if (config.certificate.empty() != config.key.empty())
      user.mistake("client-certificate", "a certificate needs its key, and a key its certificate");
    config.token.text = user.string("token").value_or("");
    if (const auto file = user.string("tokenFile")) config.token = {.file = whole_path(*file)};
    constexpr const char* kInstead = "use a token or a client certificate, for example of a ServiceAccount";
    for (const auto* field : {"exec", "auth-provider", "username", "password"}) refuse(user, field, kInstead);
    for (const auto* field : {"as", "as-uid", "as-groups", "as-user-extra"})
      refuse(user, field, "use an account of its own");
  }

  static void refuse(Decoder& object, const std::string& field, const std::string& hint) {
    const auto* value = object.value(field);
    if (value == nullptr || *value == "") return;
    object.mistake(field,
                   field == "exec" ? "Drover runs no login programs" : "it is not supported, and so refused",
                   hint);
  }

  /// The text in base64 goes before the file, as in kubectl.
  Secret secret(Decoder& object, const std::string& file, const std::string& data) {
    auto encoded = object.string(data).value_or("");
    const auto path = object.string(file).value_or("");
    if (encoded.empty()) return path.empty() ? Secret{} : Secret{.file = whole_path(path)};
    std::erase_if(encoded, [](unsigned char c) { return std::isspace(c) != 0; });
    if (auto text = decode_base64(encoded); text && !text->empty()) return {.text = std::move(*text)};
    object.mistake(data, "it is not base64");
    return {};
  }

  std::string whole_path(const std::string& path) const {
    return path.starts_with('/') ? path : folder_ + "/" + path;
  }

  Decoder root_;
  std::string folder_;
};

}  // namespace

Result<ServerConfig> parse_kubeconfig(std::string_view text, std::string_view what, const std::string& folder,
                                      const std::string& wanted) {
  DROVER_TRY(const auto document, parse_yaml(text, what));
  if (!document.is_object())
    return fail(ErrorKind::kInvalid, fmt::format("{} is no kubeconfig: it holds no fields", what));
  std::vector<Error> errors;
  auto config = KubeconfigReader(document, folder, errors).read(wanted);
  if (!errors.empty()) return Failure(join_mistakes(errors, what));
  config.source = what;
  return config;
}

}  // namespace drover::kube
