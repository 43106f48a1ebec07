#pragma once

// Looks into an image for user-land drivers, and matches it with the machine before a task starts:
// the same for every containerizer. Blocks; thread safe.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "container/containerizer.h"
#include "driver/match.h"
#include "image/image.h"
#include "image/merged.h"

namespace drover::container {

/// How the folders of an image are looked into: as image::list_merged does.
using FolderLister = std::function<Result<std::vector<image::MergedEntry>>(
    const std::string& folder, const std::function<bool(std::string_view)>& wanted)>;

/// What is known of the image: its environment with the task's on top, and the drivers in it, which `list`
/// finds, and without one the image's layers.
Result<driver::ImageFacts> driver_facts(const Launch& launch, const image::Image& image,
                                        const FolderLister& list = {});

/// Refuses an image that cannot work on the GPUs that the task was given; fine for a task without GPUs. The
/// answer says whether the image's forward compatibility package belongs before the machine's driver
/// (environment_of).
Result<bool> check_driver(const Launch& launch, const image::Image& image, const FolderLister& list = {});

}  // namespace drover::container
