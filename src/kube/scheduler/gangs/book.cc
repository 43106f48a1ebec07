#include "kube/scheduler/gangs/book.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shorten.h"

namespace drover::kube::scheduler {

/// Answers view() for one gang.
class GangBook::Look {
 public:
  Look(const GangIdentity& gang, const Entries& entries, const GangBook& book) : gang_(gang) {
    for (const auto& [uid, entry] : entries) ranked_.push_back({&uid, &entry});
    std::ranges::sort(ranked_, {}, [](const Ranked& member) {
      return std::tie(member.entry->member.rank, member.entry->name, *member.uid);
    });
    // Its first pod speaks for all.
    const auto& first = ranked_.front().entry->member;
    if (!first.size && first.object) {
      object_ = &*first.object;
      const auto found = book.objects_.find(key_of(object_->resource, gang.name_space, object_->name));
      if (found != book.objects_.end() && found->second.group) group_ = &*found->second.group;
    }
  }

  GangView view() {
    if (group_ != nullptr && *group_) wanted_ = **group_;
    if (const auto size = ranked_.front().entry->member.size) wanted_.minimum = *size;
    view_.minimum = wanted_.minimum;
    view_.topology_key = wanted_.topology_key;
    view_.arrangement = ranked_.front().entry->member.arrangement;
    view_.queue = ranked_.front().entry->queue.empty() ? wanted_.queue : ranked_.front().entry->queue;
    count();
    view_.reason = why_unknown();
    if (view_.reason.empty()) view_.reason = why_unlike();
    if (view_.reason.empty()) view_.reason = why_too_few();
    if (view_.reason.empty()) choose();
    return std::move(view_);
  }

 private:
  struct Ranked {
    const std::string* uid;
    const Entry* entry;
  };
  struct Count {
    int started = 0;
    int waiting = 0;
  };

  static bool is_gated(const Entry& entry) { return !entry.made_from->scheduling_gates.empty(); }

  void count() {
    for (const auto& [uid, entry] : ranked_) {
      if (entry->bound && !entry->member.succeeded) view_.bound.push_back(*uid);
      auto& part = parts_[entry->member.subgroup];
      if (entry->bound) {
        ++all_.started;
        ++part.started;
      } else if (is_gated(*entry)) {
        ++gated_;
      } else {
        ++all_.waiting;
        ++part.waiting;
      }
    }
    view_.half = !view_.bound.empty() && (all_.started < wanted_.minimum || part_in_need() != nullptr);
  }

  /// nullptr: each has started as far as it must.
  const std::string* part_in_need() {
    for (const auto& [name, least] : wanted_.of_subgroups)
      if (parts_[name].started < least) return &name;
    return nullptr;
  }

  std::string why_unknown() const {
    if (object_ == nullptr || (group_ != nullptr && *group_)) return "";
    if (group_ != nullptr) return group_->error().message;
    return fmt::format("waits for the {} '{}/{}', which is not there yet", object_->kind,
                       shortened(gang_.name_space), shortened(object_->name));
  }

  /// All its pods are decided on as one.
  std::string why_unlike() const {
    const Entry* first = nullptr;
    for (const auto& [unused, entry] : ranked_) {
      if (entry->member.succeeded || is_gated(*entry)) continue;
      if (first == nullptr) first = entry;
      const auto differ = [&](const char* in) {
        return fmt::format("the pods of the gang '{}' differ in {}: '{}' and '{}'", describe(gang_), in,
                           shortened(first->name), shortened(entry->name));
      };
      const auto &one = *first->made_from, &other = *entry->made_from;
      if (one.scheduler_name != other.scheduler_name) return differ("their scheduler");
      if (one.priority != other.priority) return differ("priority");
      if (one.preempts != other.preempts) return differ("their preemption policy");
      if (first->queue != entry->queue) return differ("their queue");
      if (first->member.size != entry->member.size) return differ("what they say of its size");
    }
    return first == nullptr ? "" : why_unlike_object(*first->made_from);
  }

  std::string why_unlike_object(const PodTemplate& pods) const {
    if (wanted_.priority && *wanted_.priority != pods.priority)
      return fmt::format("the gang '{}' has the priority {}, and its pods have {}", describe(gang_),
                         *wanted_.priority, pods.priority);
    if (wanted_.preempts && *wanted_.preempts != pods.preempts)
      return fmt::format("the gang '{}' has another preemption policy than its pods", describe(gang_));
    return "";
  }

  std::string why_too_few() {
    if (all_.waiting == 0) return "";
    if (auto reason = too_few(all_, wanted_.minimum, ""); !reason.empty()) return reason;
    for (const auto& [name, least] : wanted_.of_subgroups)
      if (auto reason = too_few(parts_[name], least, fmt::format(" of the part '{}'", shortened(name)));
          !reason.empty())
        return reason;
    return "";
  }

  std::string too_few(const Count& count, int least, std::string_view part) const {
    const auto there = count.started + count.waiting;
    if (there >= least) return "";
    auto reason = fmt::format("waits for {} of {} pods{} of the gang '{}'", least - there, least, part,
                              describe(gang_));
    if (gated_ > 0) reason += fmt::format("; {} there have scheduling gates", gated_);
    return reason;
  }

  /// What must be together is taken from the front, and each part gets its own first.
  void choose() {
    std::set<const Entry*> chosen;
    auto needed = wanted_.minimum - all_.started;
    const auto take = [&](const Entry* entry, int& left) {
      if (left <= 0 || entry->bound || is_gated(*entry) || !chosen.insert(entry).second) return false;
      --left;
      return true;
    };
    std::map<std::string_view, int> of_part;
    for (const auto& [name, least] : wanted_.of_subgroups) of_part[name] = least - parts_[name].started;
    for (const auto& [unused, entry] : ranked_)
      if (take(entry, of_part[entry->member.subgroup])) --needed;
    for (const auto& [unused, entry] : ranked_) take(entry, needed);
    for (const auto& [uid, entry] : ranked_)
      if (!entry->bound && !is_gated(*entry))
        (chosen.contains(entry) ? view_.together : view_.later).push_back(*uid);
  }

  const GangIdentity& gang_;
  std::vector<Ranked> ranked_;
  const GangObject* object_ = nullptr;
  const Result<GangGroup>* group_ = nullptr;
  GangGroup wanted_;
  Count all_;
  std::map<std::string, Count, std::less<>> parts_;
  int gated_ = 0;
  GangView view_;
};

GangBook::ObjectKey GangBook::key_of(const Resource& resource, std::string_view name_space,
                                     std::string_view name) {
  return {resource.group, resource.plural, std::string(name_space), std::string(name)};
}

void GangBook::put_pod(const Pod& pod, GangMember member, std::string queue) {
  remove_pod(pod.uid);
  if ((pod.ended || pod.terminating) && !member.succeeded) return;
  const auto gang = member.gang;
  if (!member.size && member.object) {
    const auto& object = *member.object;
    auto& known = objects_[key_of(object.resource, gang.name_space, object.name)];
    if (known.path.name.empty()) known.path = {object.resource, gang.name_space, object.name};
    known.gangs.insert(gang);
  }
  gangs_[gang].insert_or_assign(
      pod.uid, Entry{pod.name, std::move(member), std::move(queue), pod.made_from, !pod.node_name.empty()});
  gang_of_pod_.insert_or_assign(pod.uid, gang);
  changed_.insert(gang);
}

void GangBook::remove_pod(std::string_view uid) {
  const auto found = gang_of_pod_.find(uid);
  if (found == gang_of_pod_.end()) return;
  const auto gang = gangs_.find(found->second);
  const auto entry = gang->second.find(uid);
  const auto object = entry->second.member.object;
  gang->second.erase(entry);
  changed_.insert(gang->first);
  gang_of_pod_.erase(found);
  if (object &&
      std::ranges::none_of(gang->second, [&](const auto& of) { return of.second.member.object == object; })) {
    const auto key = key_of(object->resource, gang->first.name_space, object->name);
    if (const auto known = objects_.find(key); known != objects_.end())
      known->second.gangs.erase(gang->first);
    forget_unused(key);
  }
  if (gang->second.empty()) gangs_.erase(gang);
}

void GangBook::put_object(const Resource& resource, std::string_view name_space, std::string_view name,
                          Result<GangGroup> group) {
  set_object(resource, name_space, name, std::move(group));
}

void GangBook::remove_object(const Resource& resource, std::string_view name_space, std::string_view name) {
  set_object(resource, name_space, name, std::nullopt);
}

void GangBook::set_object(const Resource& resource, std::string_view name_space, std::string_view name,
                          std::optional<Result<GangGroup>> group) {
  const auto key = key_of(resource, name_space, name);
  auto& known = objects_[key];
  known.path = {resource, std::string(name_space), std::string(name)};
  if (known.group != group) changed_.insert(known.gangs.begin(), known.gangs.end());
  known.group = std::move(group);
  forget_unused(key);
}

void GangBook::forget_unused(const ObjectKey& key) {
  const auto known = objects_.find(key);
  if (known != objects_.end() && known->second.gangs.empty() && !known->second.group) objects_.erase(known);
}

const GangIdentity* GangBook::gang_of(std::string_view uid) const {
  const auto found = gang_of_pod_.find(uid);
  return found == gang_of_pod_.end() ? nullptr : &found->second;
}

GangView GangBook::view(const GangIdentity& gang) const {
  const auto found = gangs_.find(gang);
  return found == gangs_.end() ? GangView() : Look(found->first, found->second, *this).view();
}

std::optional<GangBook::Reference> GangBook::object_of(const GangIdentity& gang) const {
  const auto found = gangs_.find(gang);
  if (found == gangs_.end()) return std::nullopt;
  for (const auto& [unused, entry] : found->second) {
    const auto& object = entry.member.object;
    if (!object) continue;
    const auto known = objects_.find(key_of(object->resource, gang.name_space, object->name));
    if (known == objects_.end() || !known->second.group || !*known->second.group) continue;
    return Reference{known->second.path, object->kind, (*known->second.group)->uid};
  }
  return std::nullopt;
}

std::string GangBook::queue_of(const GangIdentity& gang) const {
  const auto found = gangs_.find(gang);
  if (found == gangs_.end()) return "";
  for (const auto& [unused, entry] : found->second) {
    if (!entry.queue.empty()) return entry.queue;
    const auto& object = entry.member.object;
    if (entry.member.size || !object) continue;
    const auto known = objects_.find(key_of(object->resource, gang.name_space, object->name));
    if (known != objects_.end() && known->second.group && *known->second.group)
      return (*known->second.group)->queue;
  }
  return "";
}

std::vector<GangIdentity> GangBook::of_kind(GangKind kind) const {
  std::vector<GangIdentity> gangs;
  for (auto found = gangs_.lower_bound({kind, "", ""}); found != gangs_.end() && found->first.kind == kind;
       ++found)
    gangs.push_back(found->first);
  return gangs;
}

std::vector<GangIdentity> GangBook::half() const {
  std::vector<GangIdentity> half;
  for (const auto& [gang, entries] : gangs_)
    if (Look(gang, entries, *this).view().half) half.push_back(gang);
  return half;
}

std::vector<ObjectPath> GangBook::absent() const {
  std::vector<ObjectPath> absent;
  for (const auto& [unused, known] : objects_)
    if (!known.group) absent.push_back(known.path);
  return absent;
}

}  // namespace drover::kube::scheduler
