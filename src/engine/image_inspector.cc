#include "engine/image_inspector.h"

#include "engine/image_fits.h"
#include "image/reference.h"

namespace drover::engine {
namespace {

using Found = std::map<control::ImageName, std::optional<control::ImageFit>>;

/// Most images are looked at again and again, and have nothing new to tell.
bool is_known(const control::ImageFits& known, const control::ImageName& image,
              const std::optional<control::ImageFit>& fit) {
  const auto own = known.find(image);
  return own == known.end() ? !fit : fit == own->second;
}

}  // namespace

bool may_be_pulled(const std::string& image) {
  using Kind = image::Reference::Kind;
  const auto reference = image::parse_reference(image);
  return reference && (reference->kind == Kind::kName || reference->kind == Kind::kVariantList);
}

void ImageInspector::inspect(Wanted images, std::function<void()> done) {
  if (images.empty() || !ports_.image_variants) {
    if (done) done();
    return;
  }
  const auto machine = variant_facts(state_.machine());
  const auto asker = images.begin()->first.first;
  ports_.pool(asker, [this, images = std::move(images), machine, done = std::move(done)] {
    auto found = std::make_shared<Found>();
    for (const auto& [name, reader] : images)
      (*found)[name] = fit_of(name.second, machine,
                              [&](const std::string& reference) -> Result<std::vector<ImageVariant>> {
                                auto user = reader ? Result<User>(*reader) : user_of(name.first, name.first);
                                if (!user) return Failure(std::move(user).error());
                                return ports_.image_variants(reference, *user, {});
                              });
    ports_.post([this, images, machine, done, found] {
      if (variant_facts(state_.machine()) != machine) return inspect(images, done);
      std::erase_if(*found, [&](const auto& one) { return is_known(state_.images, one.first, one.second); });
      if (!found->empty()) known_({std::move(*found)});
      if (done) done();
    });
  });
}

void ImageInspector::inspect_each(const Wanted& images) {
  for (const auto& image : images) inspect({image});
}

void ImageInspector::add(Wanted& images, const workload::Task& task) {
  if (const auto name = control::image_name(task))
    images.emplace(*name, task.owner == task.user.uid ? std::optional(task.user) : std::nullopt);
}

ImageInspector::Wanted ImageInspector::of_work() const {
  Wanted images;
  for (const auto& [sequence, queued] : state_.queue) add(images, state_.tasks.at(queued.id).task);
  for (const auto& [id, record] : state_.services) add(images, record.target.task);
  for (const auto& [name, record] : state_.schedules) add(images, record.schedule.task);
  for (const auto& [name, fit] : state_.images) images.emplace(name, std::nullopt);
  return images;
}

control::Outcome ImageInspector::hold(const Wanted& images) const {
  control::Outcome held;  // without a plan: that would start what is to be held, at the start of the daemon
  if (!ports_.image_variants) return held;
  control::ImageFit fit;
  fit.pending = true;
  for (const auto& [name, reader] : images) held.images.emplace(name, fit);
  return held;
}

void ImageInspector::variants(const Caller& caller, const std::string& image, const std::string& profile,
                              std::function<void(Result<VariantsView>)> done) {
  const auto& pool = may_be_pulled(image) ? ports_.slow_pool : ports_.pool;
  pool(caller.user.uid,
       [this, user = caller.user, image, profile, own = facts_of(state_.machine()), done = std::move(done)] {
         const auto inspect = [&]() -> Result<VariantsView> {
           auto machine = own;
           if (!profile.empty()) {
             DROVER_TRY(machine, ports_.profile_facts(profile));
           }
           image::LookupOptions request{.ask_registries = true};
           request.stop = asking_.get_token();
           DROVER_TRY(auto variants, ports_.image_variants(image, user, request));
           return explain_variants(std::move(variants), std::move(machine), profile);
         };
         auto answer = std::make_shared<Result<VariantsView>>(inspect());
         ports_.post([done, answer] { done(std::move(*answer)); });
       });
}

}  // namespace drover::engine
