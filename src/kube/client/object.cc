#include "kube/client/object.h"

#include <fmt/format.h>

#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <nlohmann/json.hpp>

#include "kube/client/url_text.h"

namespace drover::kube {

std::string url_text(std::string_view text) {
  return boost::urls::encode(text, boost::urls::unreserved_chars);
}

std::string api_version(const Resource& resource) {
  return resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
}

std::string url_path(const ObjectPath& path) {
  const auto& [resource, name_space, name, subresource] = path;
  if (resource.version.empty()) return "/" + url_text(resource.plural);
  auto text = resource.group.empty() ? "/api/" : "/apis/" + url_text(resource.group) + "/";
  text += url_text(resource.version);
  if (!name_space.empty()) text += "/namespaces/" + url_text(name_space);
  if (!resource.plural.empty()) text += "/" + url_text(resource.plural);
  if (!name.empty()) text += "/" + url_text(name);
  if (!subresource.empty()) text += "/" + url_text(subresource);
  return text;
}

std::string describe(const ObjectPath& path) {
  auto text = path.resource.plural;
  if (text.empty()) return fmt::format("the API '{}'", api_version(path.resource));
  if (!path.subresource.empty()) text += "/" + path.subresource;
  if (path.name.empty())
    return path.name_space.empty() ? text : fmt::format("{} in '{}'", text, path.name_space);
  return fmt::format("{} '{}{}{}'", text, path.name_space, path.name_space.empty() ? "" : "/", path.name);
}

std::string text_at(const nlohmann::json& object, std::string_view pointer) {
  const nlohmann::json::json_pointer place{std::string(pointer)};
  if (!object.contains(place)) return "";
  const auto& value = object[place];
  return value.is_string() ? value.get<std::string>() : "";
}

std::string key_of(const nlohmann::json& object) {
  const auto name_space = text_at(object, "/metadata/namespace");
  const auto name = text_at(object, "/metadata/name");
  return name_space.empty() || name.empty() ? name : name_space + "/" + name;
}

}  // namespace drover::kube
