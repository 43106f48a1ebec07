#pragma once

// Gangs as a scheduler sees them: who waits, who has a node, and whether all are there that have to start
// together. Kept up to date pod by pod and object by object, in any order; what is put again replaces what
// was there. It owns what it is given. One thread at a time.
//
// A gang starts when its minimum is there, all of it at once; pods that come later start one by one, and so
// does who follows one that failed, as long as the others run (KEP-4671). Pods that have succeeded count as
// started, and failed ones as never been.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/client/object.h"
#include "kube/scheduler/gangs/group.h"
#include "kube/scheduler/gangs/member.h"
#include "kube/scheduler/pod.h"

namespace drover::kube::scheduler {

/// What is to be done about a gang. Pods are named by their uids, in the order of their ranks.
struct GangView {
  std::vector<std::string> together;  ///< have to get their nodes at once; empty: the gang has started, or
                                      ///< cannot start yet
  std::vector<std::string> later;     ///< may start one by one when those above have
  std::vector<std::string> bound;     ///< have a node
  int minimum = 1;
  bool half = false;   ///< some have a node, and fewer than must: it comes before gangs of which none has
  std::string reason;  ///< why none can start yet, in words: "waits for 3 of 8 pods of the gang 'team/train'"
  std::string queue;   ///< that its pods, or its object, name; "": none
  std::optional<placement::Arrangement> arrangement;
  std::string topology_key;  ///< a label of nodes that has to be the same for all; "": none
};

class GangBook {
 public:
  /// One that ended in failure or is being deleted is as good as removed. `queue` is what it names, or "".
  void put_pod(const Pod& pod, GangMember member, std::string queue = "");
  void remove_pod(std::string_view uid);
  /// An object that cannot be read is put too: its gangs wait, and say so.
  void put_object(const Resource& resource, std::string_view name_space, std::string_view name,
                  Result<GangGroup> group);
  void remove_object(const Resource& resource, std::string_view name_space, std::string_view name);

  /// nullptr: it is of no gang.
  const GangIdentity* gang_of(std::string_view uid) const;
  /// Of one without pods: nothing to be done.
  GangView view(const GangIdentity& gang) const;
  /// Where a gang's object stands, for those who write about it.
  struct Reference {
    ObjectPath path;
    std::string kind;  ///< "PodGroup"
    std::string uid;
  };
  /// nullopt: its pods say how large it is, or the object is not known.
  std::optional<Reference> object_of(const GangIdentity& gang) const;
  /// That its pods, or its object, name; "": none.
  std::string queue_of(const GangIdentity& gang) const;
  /// Those of which there are pods.
  std::vector<GangIdentity> of_kind(GangKind kind) const;
  /// The gangs that are half started: after a crash, and after a pod was lost.
  std::vector<GangIdentity> half() const;
  /// The objects that gangs ask for and nobody has put.
  std::vector<ObjectPath> absent() const;
  /// Those whose view may be another than when this was asked last.
  std::set<GangIdentity> take_changed() { return std::exchange(changed_, {}); }

 private:
  struct Entry {
    std::string name;
    GangMember member;
    std::string queue;
    std::shared_ptr<const PodTemplate> made_from;
    bool bound = false;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;  ///< by uid
  using ObjectKey = std::tuple<std::string, std::string, std::string, std::string>;
  struct Known {
    ObjectPath path;
    std::optional<Result<GangGroup>> group;
    std::set<GangIdentity> gangs;  ///< that ask for it
  };
  class Look;

  static ObjectKey key_of(const Resource& resource, std::string_view name_space, std::string_view name);
  void set_object(const Resource& resource, std::string_view name_space, std::string_view name,
                  std::optional<Result<GangGroup>> group);
  void forget_unused(const ObjectKey& key);

  std::map<GangIdentity, Entries> gangs_;
  std::map<std::string, GangIdentity, std::less<>> gang_of_pod_;
  std::map<ObjectKey, Known> objects_;
  std::set<GangIdentity> changed_;
};

}  // namespace drover::kube::scheduler
