#include "kube/dra/cluster.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/client/object.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

Resource resource_of(ApiVersion version, const char* plural) {
  return {"resource.k8s.io", version == ApiVersion::kV1 ? "v1" : "v1beta1", plural};
}

std::vector<json> copies_of(const ObjectList& list) {
  std::vector<json> objects;
  for (const auto& item : list.items) objects.push_back(*item);
  return objects;
}

class ApiClaims : public ClaimSource {
 public:
  ApiClaims(std::shared_ptr<Api> api, ApiVersion version)
      : api_(std::move(api)), resource_(resource_of(version, "resourceclaims")) {}

  Result<json> claim(const std::string& namespace_name, const std::string& name) override {
    if (namespace_name.empty() || name.empty())
      return fail(ErrorKind::kInvalid, "the claim has no name or no namespace");
    return api_->get({resource_, namespace_name, name});
  }
  Result<std::vector<json>> claims() override { return api_->list({resource_}).map(copies_of); }
  Result<json> apply_status(const ClaimReference& claim, const json& status,
                            const std::string& manager) override {
    return api_->apply(
        {resource_, claim.namespace_name, claim.name, "status"},
        {{"apiVersion", api_version(resource_)},
         {"kind", "ResourceClaim"},
         {"metadata", {{"namespace", claim.namespace_name}, {"name", claim.name}, {"uid", claim.uid}}},
         {"status", status}},
        manager);
  }

 private:
  std::shared_ptr<Api> api_;
  Resource resource_;
};

class ApiSlices : public SliceApi {
 public:
  ApiSlices(std::shared_ptr<Api> api, ApiVersion version, const std::string& driver, std::string node)
      : api_(std::move(api)),
        version_(version),
        resource_(resource_of(version, "resourceslices")),
        selector_(fmt::format("spec.driver={},spec.nodeName={}", driver, node)),
        node_(std::move(node)) {}

  ApiVersion version() const override { return version_; }
  Result<ServerVersion> server_version() override { return kube::server_version(*api_); }
  Result<std::string> node_uid() override {
    DROVER_TRY(const auto node, api_->get({kNodes, "", node_}));
    return text_at(node, "/metadata/uid");
  }
  Result<std::vector<json>> list() override {
    return api_->list({.resource = resource_, .field_selector = selector_}).map(copies_of);
  }
  Result<json> create(const json& slice) override { return api_->create({resource_}, slice); }
  Result<json> update(const json& slice) override {
    return api_->replace({resource_, "", text_at(slice, "/metadata/name")}, slice);
  }
  Status remove(const std::string& name) override { return api_->remove({resource_, "", name}); }

 private:
  std::shared_ptr<Api> api_;
  ApiVersion version_;
  Resource resource_;
  std::string selector_;
  std::string node_;
};

}  // namespace

Result<ApiVersion> served_version(Api& api, const std::string& node) {
  for (const auto version : {ApiVersion::kV1, ApiVersion::kV1beta1}) {
    // What the driver has to be allowed to do in any case.
    const auto listed = api.list(
        {.resource = resource_of(version, "resourceslices"), .field_selector = "spec.nodeName=" + node});
    if (listed) return version;
    if (listed.error().kind != ErrorKind::kNotFound) return Failure(listed.error());
  }
  return fail(ErrorKind::kUnsupported, "the API server has neither resource.k8s.io/v1 nor v1beta1",
              "Dynamic Resource Allocation needs Kubernetes 1.32 and, before 1.34, its feature gate");
}

std::shared_ptr<ClaimSource> claims_at(std::shared_ptr<Api> api, ApiVersion version) {
  return std::make_shared<ApiClaims>(std::move(api), version);
}

std::shared_ptr<SliceApi> slices_at(std::shared_ptr<Api> api, ApiVersion version, const std::string& driver,
                                    const std::string& node) {
  return std::make_shared<ApiSlices>(std::move(api), version, driver, node);
}

}  // namespace drover::kube::dra
