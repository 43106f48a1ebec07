// The images of the daemon's machine: pulled from registries, or loaded from files.

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/event_stream.h"
#include "cli/printable.h"
#include "cli/pull_view.h"
#include "cli/table.h"
#include "cli/task_flags.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct ImageOptions {
  std::string from;
  std::vector<std::string> names;
  bool all = false;
  bool json = false;
};

std::string image_target(const std::string& name) {
  return "/v1/images/" + percent_encode(name);
}

/// Shows what the daemon tells until the image is there.
Result<json> follow(const Context& context, const std::string& target, const json& body, bool quiet) {
  PullView view(::isatty(STDERR_FILENO) == 1);
  Result<json> outcome = fail(ErrorKind::kUnavailable, "The daemon ended before the image was there",
                              "try again: what has come is kept");
  const auto handle = [&](const ServerEvent& event) {
    if (event.name != "progress" && event.name != "done" && event.name != "error") return true;
    const auto data = json::parse(event.data, nullptr, false);
    if (data.is_discarded()) return true;
    if (event.name == "progress") {
      if (!quiet) fmt::print(stderr, "{}", view.show(data));
      return true;
    }
    if (event.name == "done")
      outcome = data;
    else
      outcome = Failure(read_refusal(0, json{{"error", data}}.dump()));
    return false;
  };
  EventStreamParser parser;
  DROVER_CHECK_OK(context.client().stream_post(
      target, body, [&](std::string_view piece) { return parser.feed(piece, handle); }));
  return outcome;
}

void print_image(const json& image, const ImageOptions& options) {
  if (options.json)
    print_json(image);
  else
    print(fmt::format("{}  {}\n", printable(image.value("name", "")), printable(image.value("digest", ""))));
}

Result<int> pull_images(Context& context, const ImageOptions& options) {
  for (const auto& name : options.names) {
    DROVER_TRY(const auto image, follow(context, "/v1/images/pull", {{"image", name}}, options.json));
    print_image(image, options);
  }
  return 0;
}

Result<int> load_image(Context& context, const ImageOptions& options) {
  const json body = {{"from", absolute_image(options.from)}, {"name", options.names.front()}};
  DROVER_TRY(const auto image, follow(context, "/v1/images/load", body, options.json));
  print_image(image, options);
  return 0;
}

std::string age_of(const json& image) {
  const auto at = parse_time(image.value("pulled_at", ""));
  if (!at) return "-";
  return format_duration(std::max(wall_clock() - *at, std::chrono::milliseconds(0)));
}

Result<int> list_images(Context& context, const TableOptions& options) {
  DROVER_TRY(const auto listing, context.client().get("/v1/images"));
  if (options.json) {
    print_json(listing);
    return 0;
  }
  Table table({"NAME", "DIGEST", "SIZE", "AGE", "FOR"});
  for (const auto& image : listing.value("images", json::array())) {
    constexpr std::size_t kShown = 19;  // "sha256:" and as many digits as Docker shows
    table.add({image.value("name", ""), image.value("digest", "").substr(0, kShown),
               format_bytes(image.value("bytes", std::uint64_t{0})), age_of(image),
               image.value("everybody", false) ? "everybody" : image.value("users", json::array()).dump()});
  }
  DROVER_TRY(const auto text, shown(table, options));
  print(text);
  return 0;
}

Result<int> inspect_image(Context& context, const ImageOptions& options) {
  DROVER_TRY(const auto image, context.client().get(image_target(options.names.front())));
  print_json(image);
  return 0;
}

Result<int> remove_images(Context& context, const ImageOptions& options) {
  for (const auto& name : options.names) {
    DROVER_TRY(const auto removed, context.client().erase(image_target(name)));
    print_image(removed, options);
  }
  return 0;
}

Result<int> prune_images(Context& context, const ImageOptions& options) {
  DROVER_TRY(const auto pruned, context.client().post("/v1/images/prune", {{"all", options.all}}));
  if (options.json) {
    print_json(pruned);
    return 0;
  }
  for (const auto& name : pruned.value("names", std::vector<std::string>{})) print(printable(name) + "\n");
  print(fmt::format("{} freed; blobs that nobody used: {}, layers: {}\n",
                    format_bytes(pruned.value("bytes", std::uint64_t{0})), pruned.value("blobs", 0),
                    pruned.value("layers", 0)));
  return 0;
}

CLI::App* add_command(CLI::App& group, const char* name, const char* what,
                      const std::shared_ptr<ImageOptions>& options) {
  auto* command = group.add_subcommand(name, what);
  command->add_flag("--json", options->json, "Print JSON");
  return command;
}

}  // namespace

void add_images(CLI::App& app, Context& context) {
  auto* group =
      app.add_subcommand("image", "Pull images from registries, and look after those that are here");
  group->require_subcommand(1);
  constexpr const char* kName =
      "Its name, as registries have it: redis:7, nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04";
  const auto add_names = [](CLI::App* command, ImageOptions& options) {
    command->add_option("name", options.names, kName)->required()->type_name("IMAGE");
  };

  auto pull = std::make_shared<ImageOptions>();
  auto* command = add_command(*group, "pull", "Bring images from their registries", pull);
  add_names(command, *pull);
  on_call(command, context, pull, pull_images);

  auto list = std::make_shared<TableOptions>();
  command = group->add_subcommand("ls", "List the images that were pulled or loaded");
  add_list_flags(*command, *list);
  on_call(command, context, list, list_images);

  auto remove = std::make_shared<ImageOptions>();
  command = add_command(*group, "rm", "Take names away; 'prune' frees what they led to", remove);
  add_names(command, *remove);
  on_call(command, context, remove, remove_images);

  auto inspect = std::make_shared<ImageOptions>();
  command = add_command(*group, "inspect", "Print all that is known of an image, as JSON", inspect);
  command->add_option("name", inspect->names, kName)->required()->expected(1)->type_name("IMAGE");
  on_call(command, context, inspect, inspect_image);

  auto load = std::make_shared<ImageOptions>();
  command = add_command(*group, "load", "Take an image in that lies in a file or folder", load);
  command->add_option("from", load->from, "oci:LAYOUT[:TAG], oci-archive:FILE or docker-archive:FILE")
      ->required()
      ->type_name("REF");
  command->add_option("name", load->names, "What to call it")->required()->expected(1)->type_name("NAME");
  on_call(command, context, load, load_image);

  auto prune = std::make_shared<ImageOptions>();
  command = add_command(*group, "prune", "Free what no name and no task uses", prune);
  command->add_flag("--all", prune->all, "Also take away the names that no task uses");
  on_call(command, context, prune, prune_images);

  add_image_variants(*group, context);
}

}  // namespace drover::cli
