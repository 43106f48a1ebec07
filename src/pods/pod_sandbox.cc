#include "pods/pod_sandbox.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "kube/sandboxes/store.h"
#include "pods/log_copy.h"

namespace drover::pods {
namespace {

constexpr const char* kPlacesFile = "places";

/// "stdout" of "/stdout"; "" of what is in no folder of the sandbox.
std::string inside(const std::string& path) {
  const auto begin = path.find_first_not_of('/');
  return begin == std::string::npos ? "" : path.substr(begin);
}

bool is_output(const std::string& name) {
  return name == "stdout" || name == "stderr";
}

class PodSandbox final : public SandboxReader {
 public:
  PodSandbox(std::string folder, NodeAgents& agents)
      : folder_(std::move(folder)), copies_(folder_ + "/" + kSandboxFolder), agents_(agents) {}

  Result<std::vector<FileInfo>> browse(const User& reader, const std::string& path) const override {
    const auto place = this->place();
    if (!place) return copies_.browse(reader, path);
    auto files = kube::browse_sandbox(agents_.agent(place->node), place->uid, reader, path);
    const bool is_top = inside(path).empty() || inside(path) == ".";
    if (!is_top) return files;
    // What is left of a sandbox that is gone are the copies.
    if (!files && files.error().kind != ErrorKind::kNotFound) return files;
    auto all = files.value_or(std::vector<FileInfo>());
    std::erase_if(all, [](const FileInfo& file) { return is_output(file.name); });
    if (auto copies = copies_.browse(reader, ""))
      for (auto& copy : *copies)
        if (is_output(copy.name)) all.push_back(std::move(copy));
    std::ranges::sort(all, {}, &FileInfo::name);
    return all;
  }

  Result<SandboxContent> file(const User& reader, const std::string& path) const override {
    const auto place = this->place();
    if (!place || is_output(inside(path))) return copies_.file(reader, path);
    return kube::sandbox_file(agents_.agent(place->node), place->uid, reader, path);
  }

 private:
  std::optional<SandboxPlace> place() const {
    const auto task = Directory::open(folder_);
    const auto places = task ? places_of(*task) : std::vector<SandboxPlace>();
    return places.empty() ? std::nullopt : std::optional(places.back());
  }

  const std::string folder_;
  const FolderReader copies_;
  NodeAgents& agents_;
};

}  // namespace

Status note_place(const Directory& task, const SandboxPlace& place) {
  auto places = places_of(task);
  if (!places.empty() && places.back() == place) return {};
  places.push_back(place);
  std::string text;
  for (const auto& one : places) text += one.node + " " + one.uid + "\n";
  return task.write(kPlacesFile, text, 0600);
}

std::vector<SandboxPlace> places_of(const Directory& task) {
  std::vector<SandboxPlace> places;
  if (const auto text = task.read(kPlacesFile)) {
    std::istringstream words(*text);
    for (SandboxPlace place; words >> place.node >> place.uid;)
      if (kube::is_uid(place.uid)) places.push_back(place);
  }
  return places;
}

Status remove_sandboxes(const Directory& task, NodeAgents& agents) {
  Status all;
  for (const auto& place : places_of(task))
    if (const auto removed = kube::remove_sandbox(agents.agent(place.node), place.uid); !removed)
      all = removed;
  return all;
}

std::shared_ptr<const SandboxReader> pod_sandbox(std::string folder, NodeAgents& agents) {
  return std::make_shared<PodSandbox>(std::move(folder), agents);
}

}  // namespace drover::pods
