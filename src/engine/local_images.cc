// What LocalEngine knows of images that stand for several.

#include "engine/image_fits.h"
#include "engine/local.h"

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

void LocalEngine::look_at_images(const Caller& caller, const std::vector<std::string>& images,
                                 std::function<void()> done) {
  ImagesToSee wanted;
  for (const auto& image : images) wanted.emplace(control::ImageName{caller.user.uid, image}, caller.user);
  look_at(std::move(wanted), std::move(done));
}

void LocalEngine::look_at(ImagesToSee images, std::function<void()> done) {
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
      if (variant_facts(state_.machine()) != machine) return look_at(images, done);
      std::erase_if(*found, [&](const auto& one) { return is_known(state_.images, one.first, one.second); });
      if (!found->empty()) (void)process(control::event::ImagesKnown{std::move(*found)});
      if (done) done();
    });
  });
}

void LocalEngine::add(ImagesToSee& images, const workload::Task& task) {
  if (const auto name = control::image_name(task))
    images.emplace(*name, task.owner == task.user.uid ? std::optional(task.user) : std::nullopt);
}

LocalEngine::ImagesToSee LocalEngine::images_of_work() const {
  ImagesToSee images;
  for (const auto& [sequence, queued] : state_.queue) add(images, state_.tasks.at(queued.id).task);
  for (const auto& [id, record] : state_.services) add(images, record.target.task);
  for (const auto& [name, record] : state_.schedules) add(images, record.schedule.task);
  for (const auto& [name, fit] : state_.images) images.emplace(name, std::nullopt);
  return images;
}

std::set<control::ImageName> LocalEngine::named_images() const {
  std::set<control::ImageName> names;
  const auto add = [&](const workload::Task& task) {
    if (auto name = control::image_name(task)) names.insert(*std::move(name));
  };
  for (const auto& [id, record] : state_.tasks) add(record.task);
  for (const auto& [id, record] : state_.services) add(record.target.task);
  for (const auto& [name, record] : state_.schedules) add(record.schedule.task);
  return names;
}

void LocalEngine::hold(const ImagesToSee& images) {
  if (images.empty() || !ports_.image_variants) return;
  control::Outcome held;  // without a plan: that would start what is to be held, at the start of the daemon
  control::ImageFit fit;
  fit.pending = true;
  for (const auto& [name, reader] : images) held.images.emplace(name, fit);
  control::apply(state_, held);
}

/// Instances of services are never refused: those of images that are not known yet wait until they are.
Result<std::string> LocalEngine::change(const control::Event& event) {
  ImagesToSee images;
  if (const auto* services = std::get_if<control::event::ServicesChanged>(&event))
    for (const auto& service : services->put) add(images, service.task);
  hold(images);
  auto made = process(event);
  for (const auto& image : images) look_at({image});
  return made;
}

}  // namespace drover::engine
