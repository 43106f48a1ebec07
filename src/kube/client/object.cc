#include "kube/client/object.h"

#include <fmt/format.h>

#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "kube/client/url_text.h"

namespace drover::kube {
namespace {

using nlohmann::json;

/// A member or an item, by a token of a JSON pointer; nullptr when there is none.
const json* member_of(const json& value, std::string_view token) {
  if (value.is_object()) {
    const auto found = value.find(token);
    return found == value.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool is_index = error == std::errc() && end == token.data() + token.size();
  return value.is_array() && is_index && index < value.size() ? &value[index] : nullptr;
}

/// Without a vector of its tokens: this is done for every object that a watch tells of.
const json* value_at(const json& object, std::string_view pointer) {
  if (pointer.find('~') != std::string_view::npos) {
    const json::json_pointer place{std::string(pointer)};
    return object.contains(place) ? &object[place] : nullptr;
  }
  const auto* at = &object;
  while (at != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);  // the slash
    const auto token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    at = member_of(*at, token);
  }
  return at;
}

}  // namespace

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

std::string text_at(const json& object, std::string_view pointer) {
  const auto* const value = value_at(object, pointer);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::string key_of(const json& object) {
  const auto name_space = text_at(object, "/metadata/namespace");
  const auto name = text_at(object, "/metadata/name");
  return name_space.empty() || name.empty() ? name : name_space + "/" + name;
}

}  // namespace drover::kube
