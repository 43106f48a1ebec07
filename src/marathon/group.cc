#include "marathon/group.h"

#include <fmt/format.h>

#include <algorithm>

#include "marathon/fields.h"
#include "marathon/path.h"

namespace drover::marathon {

using nlohmann::json;

namespace {

class GroupReader {
 public:
  GroupReader(const GroupContents& existing, const Options& options)
      : existing_(existing), options_(options) {}

  Decoded<GroupChange> read(const std::string& id, const json& body) {
    change_.id = id;
    Fields fields(body, mistakes_);
    if (body.is_object()) group(id, fields, body, "", 0);
    check_ids();
    if (!mistakes_.empty()) return tl::unexpected(mistakes_.refusal());
    return std::move(change_);
  }

 private:
  void group(const std::string& id, Fields& fields, const json& body, const std::string& path,
             std::size_t depth) {
    if (depth > kDeepestGroup)
      return fields.refuse("", fmt::format("groups must not be nested deeper than {}", kDeepestGroup));
    for (auto& mistake : path_mistakes(id)) fields.refuse("id", std::move(mistake));
    if (!change_.groups.emplace(id, dependencies(id, fields)).second)
      fields.refuse("id", fmt::format("the group '{}' is defined twice", id));
    const auto* pods = fields.raw("pods");
    if (pods != nullptr && !(pods->is_array() && pods->empty()))
      fields.refuse("pods", "pods are not supported");
    apps(id, fields, body, path);
    groups(id, fields, body, path, depth);
  }

  std::vector<std::string> dependencies(const std::string& id, Fields& fields) {
    if (!fields.has("dependencies")) {
      const auto found = existing_.groups.find(id);
      return found == existing_.groups.end() ? std::vector<std::string>{} : found->second;
    }
    std::vector<std::string> paths;
    const auto given = fields.texts("dependencies").value_or(std::vector<std::string>{});
    for (std::size_t i = 0; i < given.size(); ++i) {
      auto dependency = absolute_path(given[i], id);
      const auto field = fmt::format("dependencies({})", i);
      for (auto& mistake : path_mistakes(dependency)) fields.refuse(field, std::move(mistake));
      if (is_within(id, dependency) || is_within(dependency, id))
        fields.refuse(field, "must not be the group itself, nor within it or around it");
      if (std::find(paths.begin(), paths.end(), dependency) == paths.end())
        paths.push_back(std::move(dependency));
    }
    return paths;
  }

  void apps(const std::string& id, Fields& fields, const json& body, const std::string& path) {
    if (!fields.has("apps")) {
      for (const auto& [app, service] : existing_.apps)
        if (parent_path(app) == id) change_.kept.insert(app);
      return;
    }
    (void)fields.objects("apps");
    if (!body["apps"].is_array()) return;
    for (std::size_t i = 0; i < body["apps"].size(); ++i) {
      const auto& app = body["apps"][i];
      const auto here = fmt::format("{}/apps({})", path, i);
      if (!app.is_object()) continue;
      if (change_.apps.size() >= kMostAppsOfAGroup)
        return mistakes_.broken_rule(here, fmt::format("a group has at most {} apps", kMostAppsOfAGroup));
      std::vector<int> own_ports;
      if (app.contains("id") && app["id"].is_string())
        if (const auto found = existing_.apps.find(absolute_path(app["id"].get<std::string>(), id));
            found != existing_.apps.end())
          own_ports = service_ports(*found->second);
      auto decoded = decode_app_of(id, app, options_, std::move(own_ports));
      if (!decoded) {
        mistakes_.add_part(decoded.error(), here);
        continue;
      }
      if (parent_path(decoded->service.id) != id)
        mistakes_.broken_rule(here + "/id",
                              fmt::format("identifier {} is not child of {}. Identifier must be "
                                          "direct child of its group.",
                                          decoded->service.id, id));
      for (const auto port : service_ports(decoded->service)) options_.service_ports.insert(port);
      change_.apps.push_back(std::move(*decoded));
    }
  }

  void groups(const std::string& id, Fields& fields, const json& body, const std::string& path,
              std::size_t depth) {
    if (!fields.has("groups")) return keep_groups(id);
    (void)fields.objects("groups");
    if (!body["groups"].is_array()) return;
    for (std::size_t i = 0; i < body["groups"].size(); ++i) {
      const auto& inner = body["groups"][i];
      if (!inner.is_object()) continue;
      const auto here = fmt::format("{}/groups({})", path, i);
      Fields inner_fields(inner, mistakes_, here);
      if (!inner_fields.has("id")) inner_fields.wrong_type("id", "error.path.missing");
      const auto inner_id = absolute_path(inner_fields.text("id").value_or("unnamed"), id);
      if (parent_path(inner_id) != id || inner_id == id)
        inner_fields.refuse("id",
                            fmt::format("identifier {} is not child of {}. Identifier must be direct child "
                                        "of its group.",
                                        inner_id, id));
      else
        group(inner_id, inner_fields, inner, here, depth + 1);
    }
  }

  /// All groups below `id` stay, with what is in them.
  void keep_groups(const std::string& id) {
    const auto below = [&](const std::string& path) { return path != id && is_within(path, id); };
    for (const auto& [group, dependencies] : existing_.groups)
      if (below(group)) change_.groups.emplace(group, dependencies);
    for (const auto& [app, service] : existing_.apps)
      if (below(parent_path(app))) change_.kept.insert(app);
  }

  void check_ids() {
    std::set<std::string> ids;
    for (const auto& app : change_.apps) {
      const auto& id = app.service.id;
      if (!ids.insert(id).second)
        mistakes_.broken_rule("/", fmt::format("the app '{}' is defined twice", id));
      if (change_.groups.contains(id))
        mistakes_.broken_rule("/", fmt::format("'{}' is both an app and a group", id));
    }
  }

  const GroupContents& existing_;
  Options options_;
  Mistakes mistakes_;
  GroupChange change_;
};

}  // namespace

Decoded<GroupChange> decode_group(const std::string& id, const json& body, const GroupContents& existing,
                                  const Options& options) {
  return GroupReader(existing, options).read(id, body);
}

}  // namespace drover::marathon
