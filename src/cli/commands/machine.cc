#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/gpu_words.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// A field as text; "-" where nobody knows.
std::string shown(const json& value, const char* field) {
  const auto found = value.find(field);
  if (found == value.end() || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>().empty() ? "-" : found->get<std::string>();
  return found->dump();
}

/// What stands above every listing of GPUs: above all, whether they are real.
std::string title(const json& machine) {
  std::string text;
  if (machine.value("simulated", false))
    text = fmt::format("simulated GPUs (profile {})", printable(machine.value("simulation", "")));
  const auto driver = machine.value("driver_version", "");
  if (!driver.empty()) text += (text.empty() ? "driver " : ", driver ") + driver;
  const auto cuda = machine.value("cuda_version", "");
  if (!cuda.empty()) text += ", CUDA up to " + cuda;
  if (!text.empty()) text += "\n";
  for (const auto& problem : machine.value("problems", json::array())) {
    const auto hint = problem.value("hint", "");
    text += fmt::format("problem: {}{}\n", printable(problem.value("message", "")),
                        hint.empty() ? "" : fmt::format(" ({})", printable(hint)));
  }
  return text;
}

std::string number_of(const json& usage, const char* field, const char* unit) {
  const auto value = usage.value(field, json());
  return value.is_number() ? value.dump() + unit : "-";
}

/// Whether these GPUs are of more than one machine.
bool are_several(const json& gpus) {
  for (const auto& gpu : gpus)
    if (gpu.value("node", "") != gpus.front().value("node", "")) return true;
  return false;
}

Result<int> gpus(Context& context, const TableOptions& options) {
  DROVER_TRY(const auto machine, gpus_in_use(context.client()));
  if (options.json) {
    print_json(machine);
    return 0;
  }
  std::vector<std::string> header{"GPU",     "MODEL", "MEMORY", "USE",  "TEMP", "HEALTH",
                                  "USED BY", "UUID",  "PCI",    "NUMA", "ECC"};
  const bool several = are_several(machine.value("gpus", json::array()));
  if (several) header.insert(header.begin(), "NODE");
  Table table(std::move(header));
  for (const auto& gpu : machine.value("gpus", json::array())) {
    const auto usage = usage_of(gpu);
    const auto ecc = gpu.value("ecc", json());
    std::vector<Cell> row{shown(gpu, "index"),
                          shown(gpu, "model"),
                          memory_of_gpu(gpu),
                          number_of(usage, "gpu_percent", "%"),
                          number_of(usage, "temperature", "C"),
                          health_of_gpu(gpu),
                          users_of_gpu(gpu),
                          shown(gpu, "uuid"),
                          shown(gpu, "pci"),
                          shown(gpu, "numa_node"),
                          ecc.is_boolean() ? (ecc.get<bool>() ? "on" : "off") : "-"};
    if (several) row.insert(row.begin(), shown(gpu, "node"));
    table.add(std::move(row));
  }
  DROVER_TRY(const auto text, shown(table, options));
  if (!options.format.empty() || options.no_header) {
    print(text);
    return 0;
  }
  print(title(machine) + text);
  if (machine.value("gpus", json::array()).empty()) print("This machine offers no GPUs\n");
  return 0;
}

Result<int> topo(Context& context, const ShowOptions& options) {
  DROVER_TRY(const auto machine, context.client().get("/v1/topology"));
  if (options.json) {
    print_json(machine);
    return 0;
  }
  print(title(machine) + machine.value("text", ""));
  return 0;
}

Result<int> node(Context& context, const TableOptions& options) {
  DROVER_TRY(const auto listing, context.client().get("/v1/nodes"));
  if (options.json) {
    print_json(listing);
    return 0;
  }
  Table table({"NODE", "GPUS FREE", "CPUS FREE", "MEMORY FREE", "RUNTIME", "CGROUPS"});
  std::string offers;
  for (const auto& node : listing.value("nodes", json::array())) {
    const auto* const note = node.value("simulated", false) ? " (simulated)" : "";
    const auto& gpus = node.at("gpus");
    const auto& cpus = node.at("cpus");
    const auto& memory = node.at("memory_bytes");
    table.add({shown(node, "name"),
               fmt::format("{} of {}{}", shown(gpus, "free"), shown(gpus, "total"), note),
               fmt::format("{:g} of {:g}{}", cpus.value("free", 0.0), cpus.value("total", 0.0), note),
               fmt::format("{} of {}{}", format_bytes(memory.value("free", std::uint64_t{0})),
                           format_bytes(memory.value("total", std::uint64_t{0})), note),
               shown(node, "runtime"), shown(node, "cgroups")});
    if (const auto cordoned = node.value("cordoned", ""); !cordoned.empty())
      offers += printable(fmt::format("{} is cordoned {}", node.value("name", ""), cordoned)) + "\n";
    offers += printable(node.value("resources", "")) + "\n";
  }
  DROVER_TRY(const auto text, shown(table, options));
  print(text + (options.format.empty() ? offers : ""));
  return 0;
}

void add_listing(CLI::App& app, Context& context, const std::string& name, const std::string& help,
                 Result<int> (*body)(Context&, const TableOptions&)) {
  auto options = std::make_shared<TableOptions>();
  auto* command = app.add_subcommand(name, help);
  add_list_flags(*command, *options);
  on_call(command, context, options, body);
}

}  // namespace

void add_machine(CLI::App& app, Context& context) {
  add_listing(app, context, "gpus", "List the GPUs: what they are, how they are, who has them", gpus);
  auto joined = std::make_shared<ShowOptions>();
  auto* topology = app.add_subcommand("topo", "Show how the GPUs are joined, pair by pair");
  topology->add_flag("--json", joined->json, "Print JSON");
  on_call(topology, context, joined, topo);
  add_listing(app, context, "node", "Show what this machine offers, and what of it is free", node);
}

}  // namespace drover::cli
