#include "kube/dra/preparer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/shorten.h"
#include "cdi/write.h"
#include "kube/client/object.h"
#include "kube/dra/claim_sharing.h"
#include "kube/dra/device_status.h"

namespace drover::kube::dra {

using nlohmann::json;

struct Preparer::Flight {
  int count = 0;
  bool revoked = false;
};

Preparer::Preparer(PreparerOptions options) : options_(std::move(options)) {}

Preparer::~Preparer() = default;

void Preparer::set_gpus(std::map<std::string, NodeGpu> gpus) {
  auto known = std::make_shared<const std::map<std::string, NodeGpu>>(std::move(gpus));
  const std::scoped_lock lock(news_);
  gpus_.swap(known);
}

std::vector<ClaimShare> Preparer::shares() const {
  const auto known = gpus();
  const auto book = told();
  std::vector<ClaimShare> shares;
  for (const auto& [uid, claim] : *book) {
    const bool guarded = !claim.limits.empty();
    auto limits = guarded ? claim.limits : limits_of(claim, *known, 0).value_or(std::vector<share::Limit>());
    if (limits.empty()) continue;
    shares.push_back({claim.reference, std::move(limits), guarded ? pages_folder(uid) : ""});
  }
  return shares;
}

json Preparer::statuses(const std::string& uid) const {
  const auto book = told();
  const auto found = book->find(uid);
  return found == book->end() ? json::array()
                              : device_statuses(found->second, *gpus(), {options_.driver, options_.pool});
}

std::shared_ptr<const Book> Preparer::told() const {
  const std::scoped_lock lock(news_);
  return told_;
}

std::shared_ptr<const std::map<std::string, NodeGpu>> Preparer::gpus() const {
  const std::scoped_lock lock(news_);
  return gpus_;
}

Book Preparer::book() const {
  const std::scoped_lock lock(mutex_);
  return book_;
}

Result<PreparedClaim> Preparer::prepare(const ClaimReference& reference) {
  if (!is_claim_uid(reference.uid))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no uid of a claim", shortened(reference.uid)));
  {
    const std::scoped_lock lock(mutex_);
    DROVER_CHECK_OK(load());
    if (const auto known = book_.find(reference.uid); known != book_.end()) {
      DROVER_CHECK_OK(write_specification(known->second));
      return known->second;
    }
    ++flights_[reference.uid].count;
  }
  auto claim = [&]() -> Result<PreparedClaim> {
    DROVER_CHECK_OK(recover());
    DROVER_TRY(const auto object, options_.source->claim(reference.namespace_name, reference.name));
    DROVER_TRY(auto devices, allocated_devices(object, reference, options_.driver, options_.pool));
    const std::scoped_lock lock(mutex_);
    DROVER_CHECK_OK(check_fit(devices));
    return resolved(reference, std::move(devices), is_sole(object));
  }();
  const std::scoped_lock lock(mutex_);
  auto& flight = flights_[reference.uid];
  const bool revoked = flight.revoked;
  if (--flight.count == 0) flights_.erase(reference.uid);
  if (!claim) return claim;
  if (revoked)
    return fail(ErrorKind::kConflict,
                fmt::format("the claim {} was taken back meanwhile", to_string(reference)));
  return commit(std::move(*claim));
}

/// The scheduler gives what is unhealthy only to claims that tolerate it, but it may not have heard of it
/// yet.
Status Preparer::check_fit(const std::vector<AllocatedDevice>& devices) const {
  const auto known = gpus();
  for (const auto& device : devices) {
    const auto gpu = known->find(device.device);
    if (gpu != known->end() && !gpu->second.unhealthy.empty() && !device.tolerant)
      return fail(ErrorKind::kConflict,
                  fmt::format("the GPU '{}' ({}) is given to nobody now: {}", device.device, gpu->second.uuid,
                              gpu->second.unhealthy),
                  "the claim gets it when that is over");
  }
  return {};
}

Result<PreparedClaim> Preparer::resolved(const ClaimReference& reference,
                                         std::vector<AllocatedDevice> devices, bool sole) const {
  PreparedClaim claim{reference, {}, sole};
  const auto all = gpus();
  for (auto& device : devices) {
    const auto gpu = all->find(device.device);
    if (gpu == all->end())
      return fail(ErrorKind::kNotFound,
                  fmt::format("the claim {} has the device '{}', which this node does not have now",
                              to_string(reference), shortened(device.device)));
    const auto& known = gpu->second;
    const bool made = known.mig && !known.fixed && !device.admin;
    claim.devices.push_back({std::move(device), known.uuid, known.mig, made});
  }
  DROVER_TRY(claim.sharing, arrangement_of(claim));
  auto limits = guarded_limits(claim);
  if (limits) {
    claim.limits = *std::move(limits);
  } else if (options_.share_by == workload::ShareBy::kLimits) {
    return Failure(context(limits.error(),
                           fmt::format("the claim {} cannot be held to its share", to_string(reference))));
  } else if (options_.warn) {
    options_.warn(fmt::format("the share of the claim {} is counted, and nothing enforces it: {}",
                              to_string(reference), limits.error().message));
  }
  return claim;
}

Result<std::vector<share::Limit>> Preparer::guarded_limits(const PreparedClaim& claim) const {
  if (options_.share_by == workload::ShareBy::kNone) return std::vector<share::Limit>();
  DROVER_TRY(auto limits, limits_of(claim, *gpus(), workload::kMinGuarded));
  if (limits.empty()) return limits;
  return options_.edits(true).map([&](const auto&) { return std::move(limits); });
}

Result<PreparedClaim> Preparer::commit(PreparedClaim claim) {
  const auto& uid = claim.reference.uid;
  if (const auto known = book_.find(uid); known != book_.end()) return known->second;
  DROVER_CHECK_OK(check_free(book_, claim, *gpus()));
  DROVER_CHECK_OK(check_places(claim));
  const bool makes = !claim.made().empty() || !claim.sharing.empty();
  // What cannot be written into a specification is not taken; only what has to be made first is tried.
  auto specification = makes ? Result<std::string>() : specification_of(claim);
  if (!specification) return Failure(std::move(specification).error());
  book_[uid] = claim;
  publish();
  auto taken = take();
  if (taken) taken = write_checkpoint();
  if (!taken) {
    book_.erase(uid);
    publish();
    DROVER_CHECK_OK(take());
    return Failure(std::move(taken).error());
  }
  if (makes) specification = specification_of(claim);
  if (!specification) {
    if (const auto undone = forget(uid); !undone && options_.warn) options_.warn(to_string(undone.error()));
    return Failure(std::move(specification).error());
  }
  DROVER_CHECK_OK(write_files(claim, *specification));
  return claim;
}

/// No container is given pages that are not there.
Status Preparer::write_files(const PreparedClaim& claim, const std::string& specification) {
  const auto& uid = claim.reference.uid;
  if (!claim.limits.empty()) DROVER_CHECK_OK(options_.files->keep_pages(uid, claim.limits));
  return options_.files->write_specification(uid, specification);
}

/// An instance that is there already, but in no claim, is somebody else's.
Status Preparer::check_places(const PreparedClaim& claim) const {
  const auto parts = claim.made();
  if (!parts.empty() && !options_.mig)
    return fail(ErrorKind::kUnsupported, "no MIG instances can be made on this node");
  for (const auto& part : parts)
    if (options_.mig->find(part))
      return fail(ErrorKind::kConflict,
                  fmt::format("somebody else has made the MIG instance that the claim {} is to have",
                              to_string(claim.reference)));
  return {};
}

Result<std::string> Preparer::specification_of(const PreparedClaim& claim) const {
  DROVER_TRY(auto edits, options_.edits(!claim.limits.empty()));
  for (const auto& device : claim.devices) {
    if (!device.mig || !options_.mig) continue;
    DROVER_TRY(edits.of_mig[device.allocated.device],
               device.made ? options_.mig->make(*device.mig) : options_.mig->find(*device.mig));
  }
  if (!claim.sharing.empty()) {
    if (!options_.sharing)
      return fail(ErrorKind::kUnsupported, "nothing can be arranged here for those who share a GPU");
    DROVER_TRY(const auto shared, options_.sharing->make(claim.reference.uid, claim.sharing));
    // Containers may have other requests of the claim, and their programs no daemon.
    if (const auto& mps = claim.sharing.mps)
      for (const auto& uuid : mps->gpus)
        if (const auto gpu = edits.of_gpu.find(uuid); gpu != edits.of_gpu.end()) gpu->second.append(shared);
  }
  DROVER_TRY(const auto specification,
             claim_specification(options_.driver, claim, edits, pages_folder(claim.reference.uid)));
  return cdi::write_specification(specification);
}

Result<std::set<gpu::MigPart>> Preparer::made() const {
  if (!recovered_) return fail(ErrorKind::kUnavailable, "the checkpoint of prepared claims is not read yet");
  const std::scoped_lock lock(news_);
  return made_;
}

/// What the book says, for those who do not wait. Of an instance before it is made, and after it is seen no
/// more: nobody takes it for somebody else's between.
void Preparer::publish() {
  auto parts = destroyed_;
  for (const auto& [uid, claim] : book_)
    for (auto& part : claim.made()) parts.insert(std::move(part));
  auto book = std::make_shared<const Book>(book_);
  const std::scoped_lock lock(news_);
  made_ = std::move(parts);
  told_.swap(book);
}

void Preparer::saw_instances(const std::set<gpu::MigPart>& there) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto is_gone = [&](const gpu::MigPart& part) { return !there.contains(part); };
  std::erase_if(left_, is_gone);
  if (std::erase_if(destroyed_, is_gone) > 0) publish();
}

void Preparer::destroy_left() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(left_, [&](const gpu::MigPart& part) { return options_.mig->destroy(part).has_value(); });
}

Status Preparer::unprepare(const std::string& uid) {
  if (!is_claim_uid(uid))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no uid of a claim", shortened(uid)));
  const std::scoped_lock lock(mutex_);
  if (const auto flight = flights_.find(uid); flight != flights_.end()) flight->second.revoked = true;
  DROVER_CHECK_OK(load());
  return forget(uid);
}

Status Preparer::forget(const std::string& uid) {
  DROVER_CHECK_OK(options_.files->remove_specification(uid));
  if (const auto found = book_.find(uid); found != book_.end() && options_.mig)
    for (const auto& part : found->second.made()) {
      destroyed_.insert(part);
      const auto gone = options_.mig->destroy(part);
      if (gone) continue;
      if (gone.error().kind == ErrorKind::kConflict) return gone;  // somebody uses it
      // Its GPU does not answer, and may never again: no claim, and so no pod, hangs on that.
      left_.insert(part);
      if (options_.warn) options_.warn(to_string(gone.error()));
    }
  if (const auto found = book_.find(uid);
      found != book_.end() && !found->second.sharing.empty() && options_.sharing)
    DROVER_CHECK_OK(options_.sharing->undo(uid));
  DROVER_CHECK_OK(options_.files->remove_pages(uid));
  const auto known = book_.extract(uid);
  if (known.empty()) return {};
  if (auto written = write_checkpoint(); !written) {
    book_[uid] = known.mapped();
    return written;
  }
  publish();
  return take();
}

Status Preparer::take() const {
  return options_.take ? options_.take(gpus_in_use(book_)) : Status();
}

Status Preparer::recover() {
  const std::scoped_lock recovery(recovery_);
  if (recovered_) return {};
  {
    const std::scoped_lock lock(mutex_);
    DROVER_CHECK_OK(load());
    if (gpus()->empty()) return fail(ErrorKind::kUnavailable, "the node's GPUs are not known yet");
  }
  DROVER_CHECK_OK(take_stock());
  recovered_ = true;
  return {};
}

Status Preparer::take_stock() {
  DROVER_CHECK_OK(drop_gone_claims());
  std::map<std::string, std::string> specifications;
  {
    const std::scoped_lock lock(mutex_);
    DROVER_TRY(specifications, options_.files->read_specifications());
    for (const auto& [uid, claim] : book_) specifications.erase(uid);
  }
  if (!specifications.empty()) DROVER_CHECK_OK(adopt_orphans(specifications));
  const std::scoped_lock lock(mutex_);
  std::set<std::string> uids;
  for (const auto& [uid, claim] : book_) uids.insert(uid);
  if (options_.sharing) DROVER_CHECK_OK(options_.sharing->keep_only(uids));
  DROVER_CHECK_OK(remove_orphaned_pages());
  return take();  // no more than is in the book now
}

Status Preparer::drop_gone_claims() {
  for (const auto& [uid, claim] : book()) {
    const auto object = options_.source->claim(claim.reference.namespace_name, claim.reference.name);
    if (!object && object.error().kind != ErrorKind::kNotFound) return Failure(object.error());
    if (object && text_at(*object, "/metadata/uid") == uid) continue;
    const std::scoped_lock lock(mutex_);
    DROVER_CHECK_OK(forget(uid));
  }
  return {};
}

/// Of claims that no book and no specification tells of any more.
Status Preparer::remove_orphaned_pages() {
  DROVER_TRY(const auto uids, options_.files->list_pages());
  for (const auto& uid : uids)
    if (const auto known = book_.find(uid); known == book_.end() || known->second.limits.empty())
      DROVER_CHECK_OK(options_.files->remove_pages(uid));
  return {};
}

Status Preparer::adopt_orphans(const std::map<std::string, std::string>& specifications) {
  DROVER_TRY(const auto objects, options_.source->claims());
  std::map<std::string, const json*> by_uid;
  for (const auto& object : objects) by_uid[text_at(object, "/metadata/uid")] = &object;
  const std::scoped_lock lock(mutex_);
  for (const auto& [uid, text] : specifications) {
    if (book_.contains(uid)) continue;
    const auto adopted = [&]() -> Status {
      const auto object = by_uid.find(uid);
      if (object == by_uid.end()) return fail(ErrorKind::kNotFound, "its claim is gone");
      const auto& found = *object->second;
      const ClaimReference reference{text_at(found, "/metadata/namespace"), text_at(found, "/metadata/name"),
                                     uid};
      DROVER_TRY(auto devices, allocated_devices(found, reference, options_.driver, options_.pool));
      DROVER_TRY(auto claim, resolved(reference, std::move(devices), is_sole(found)));
      return commit(std::move(claim)).map([](const PreparedClaim&) {});
    }();
    if (adopted || book_.contains(uid)) continue;
    if (options_.warn)
      options_.warn(fmt::format("removing the CDI specification of the claim with the uid '{}': {}", uid,
                                to_string(adopted.error())));
    DROVER_CHECK_OK(forget(uid));
  }
  return {};
}

Status Preparer::restore() {
  const std::scoped_lock lock(mutex_);
  if (!loaded_ || book_.empty()) return {};
  DROVER_TRY(const auto there, options_.files->read_specifications());
  Status first;
  for (const auto& [uid, claim] : book_) {
    const auto restored = [&]() -> Status {
      DROVER_TRY(const auto text, specification_of(claim));
      if (const auto found = there.find(uid); found == there.end() || found->second != text)
        return write_files(claim, text);
      return claim.limits.empty() ? Status() : options_.files->keep_pages(uid, claim.limits);
    }();
    if (!restored && first) first = restored;
  }
  return first;
}

Status Preparer::load() {
  if (loaded_) return {};
  DROVER_CHECK_OK(options_.files->remove_unfinished());
  const auto text = options_.files->read_checkpoint();
  if (!text && text.error().kind != ErrorKind::kCorrupt) return Failure(text.error());
  auto book = !text ? Result<Book>(Failure(text.error())) : *text ? read_book(**text) : Book();
  if (!book) {
    DROVER_CHECK_OK(options_.files->set_checkpoint_aside());
    if (options_.warn)
      options_.warn(to_string(book.error()) + "; it is set aside, and made anew from the claims");
    book = Book();
  }
  book_ = std::move(*book);
  publish();
  loaded_ = true;
  return {};
}

Status Preparer::write_specification(const PreparedClaim& claim) {
  DROVER_TRY(const auto text, specification_of(claim));
  return write_files(claim, text);
}

Status Preparer::write_checkpoint() {
  return options_.files->write_checkpoint(write_book(book_));
}

}  // namespace drover::kube::dra
