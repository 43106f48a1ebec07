#include "image/pulled/leases.h"

namespace drover::image {

Leases::Leases() : books_(std::make_shared<Sweep::Books>()) {}

std::shared_ptr<const void> Leases::take(std::vector<std::string> names) {
  {
    const std::lock_guard lock(books_->mutex);
    for (const auto& name : names) {
      ++books_->held[name];
      if (books_->sweeping) books_->seen.insert(name);
    }
  }
  const auto give_back = [books = books_](const std::vector<std::string>* held) {
    {
      const std::lock_guard lock(books->mutex);
      for (const auto& name : *held)
        if (--books->held[name] == 0) books->held.erase(name);
    }
    delete held;
  };
  return std::shared_ptr<std::vector<std::string>>(new std::vector<std::string>(std::move(names)), give_back);
}

Leases::Sweep::Sweep(std::shared_ptr<Books> books) : books_(std::move(books)), turn_(books_->one_sweep) {
  const std::lock_guard lock(books_->mutex);
  books_->sweeping = true;
  for (const auto& [name, count] : books_->held) books_->seen.insert(name);
}

Leases::Sweep::~Sweep() {
  if (!books_) return;
  const std::lock_guard lock(books_->mutex);
  books_->sweeping = false;
  books_->seen.clear();
}

}  // namespace drover::image
