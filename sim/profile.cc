#include "sim/profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "base/yaml.h"
#include "sim/required.h"

namespace drover::sim {
namespace {

using nlohmann::json;
using Errors = std::vector<Error>;

constexpr int kMaxGpus = 64;
constexpr int kMaxCpus = 4096;
constexpr int kMaxLinks = 18;
constexpr int kMaxMinor = 253;  // the driver keeps the next two for its control devices
constexpr std::int64_t kMaxMib = std::int64_t{1} << 40;
constexpr std::uint32_t kNvidia = 0x10de;

template <typename Integer>
bool parse_whole(std::string_view text, Integer& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// Two numbers with a point between, as "12.4".
std::pair<int, int> dotted(Decoder& decoder, const Required& required, const std::string& name) {
  const auto text = required.string(name);
  const auto point = text.find('.');
  std::pair<int, int> value;
  const bool valid = point != std::string::npos && parse_whole(text.substr(0, point), value.first) &&
                     parse_whole(text.substr(point + 1), value.second);
  if (!valid && !text.empty()) decoder.mistake(name, "expected MAJOR.MINOR in quotes, found '" + text + "'");
  return value;
}

/// 64 bits that look random and are the same on every machine (FNV-1a with a final mix).
std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 33);
}

std::string made_up_serial(const std::string& seed) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "03%011llu", stable_hash(seed + "/serial") % 100000000000ULL);
  return text.data();
}

bool lists_numa_node(const Host& host, int id) {
  return std::any_of(host.numa.begin(), host.numa.end(), [&](const NumaNode& node) { return node.id == id; });
}

/// "6fcb514b-9fb5-…" as bytes.
std::optional<std::array<unsigned char, 16>> uuid_bytes(std::string text) {
  constexpr std::size_t kLength = 36;
  std::array<unsigned char, 16> bytes{};
  if (text.size() != kLength) return std::nullopt;
  for (const std::size_t dash : {23, 18, 13, 8}) {
    if (text[dash] != '-') return std::nullopt;
    text.erase(dash, 1);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (!parse_whole(std::string_view(text).substr(2 * i, 2), bytes.at(i), 16)) return std::nullopt;
  return bytes;
}

/// After the NUMA nodes, which it names.
void decode_nics(Decoder& decoder, Host& host, Errors& errors) {
  for (auto& nic : decoder.objects("nics")) {
    Nic decoded{Required(nic, errors).string("name"), std::nullopt};
    const bool known = std::any_of(host.nics.begin(), host.nics.end(),
                                   [&](const Nic& other) { return other.name == decoded.name; });
    if (known) nic.mistake("name", "two NICs have this name");
    if (const auto numa = nic.integer("numa", 0, 1023)) decoded.numa = static_cast<int>(*numa);
    if (decoded.numa && !lists_numa_node(host, *decoded.numa))
      nic.mistake("numa", "no such NUMA node", "list it under /host/numa");
    nic.finish();
    host.nics.push_back(std::move(decoded));
  }
}

Host decode_host(Decoder& decoder, const Required& required, Errors& errors) {
  Host host;
  host.cpus = required.integer("cpus", 1, kMaxCpus);
  host.memory_mib = required.integer<std::uint64_t>("memory_mib", 1, kMaxMib);
  host.disk_mib = required.integer<std::uint64_t>("disk_mib", 1, kMaxMib);
  std::set<int> placed;
  for (auto& node : decoder.objects("numa")) {
    const Required node_required(node, errors);
    NumaNode numa;
    numa.id = node_required.integer("node", 0, 1023);
    if (auto cpus = parse_cpu_list(node_required.string("cpus")); cpus)
      numa.cpus = *cpus;
    else
      node.mistake("cpus", cpus.error().message, cpus.error().hint);
    for (const int cpu : numa.cpus)
      if (cpu >= host.cpus || !placed.insert(cpu).second)
        node.mistake("cpus",
                     "CPU " + std::to_string(cpu) + " is in another node already or beyond /host/cpus");
    if (!host.numa.empty() && host.numa.back().id >= numa.id)
      node.mistake("node", "list the nodes by number");
    node.finish();
    host.numa.push_back(std::move(numa));
  }
  if (static_cast<int>(placed.size()) != host.cpus)
    decoder.mistake("numa",
                    std::to_string(host.cpus - static_cast<int>(placed.size())) + " CPUs are in no node",
                    "list every CPU once");
  decode_nics(decoder, host, errors);
  host.cpu = decoder.strings("cpu").value_or(host.cpu);
  return host;
}

void decode_card(Decoder& decoder, const Required& required, Model& model) {
  model.name = required.string("name");
  model.brand = decoder.string("brand").value_or("tesla");
  if (!std::set<std::string>{"tesla", "geforce", "nvidia"}.contains(model.brand))
    decoder.mistake("brand", "unknown brand '" + model.brand + "'", "one of tesla, geforce, nvidia");
  model.architecture = required.string("architecture");
  static const std::set<std::string> architectures{"kepler", "maxwell", "pascal", "volta",
                                                   "turing", "ampere",  "ada",    "hopper"};
  if (!model.architecture.empty() && !architectures.contains(model.architecture))
    decoder.mistake("architecture", "unknown architecture '" + model.architecture + "'",
                    "did you mean '" + nearest(model.architecture, architectures) + "'?");
  std::tie(model.compute_major, model.compute_minor) = dotted(decoder, required, "compute_capability");
  model.cores = required.integer("cores", 1, 1 << 20);
  model.multiprocessors = required.integer("multiprocessors", 1, 1 << 12);
  model.part_number = decoder.string("part_number").value_or("");
  model.vbios = decoder.string("vbios").value_or("");
  model.inforom = decoder.string("inforom").value_or("");
  model.ecc = decoder.boolean("ecc");
  model.row_remapping = decoder.boolean("row_remapping").value_or(false);
  if (const auto fan = decoder.integer("fan_percent", 0, 100)) model.fan_percent = static_cast<int>(*fan);
}

void decode_limits(const Required& required, Model& model) {
  required.object("memory", [&](Decoder& memory, const Required& field) {
    model.memory_mib = field.integer<std::uint64_t>("mib", 1, kMaxMib);
    model.reserved_mib = static_cast<std::uint64_t>(memory.integer("reserved_mib", 0, kMaxMib).value_or(0));
    model.bar1_mib = field.integer<std::uint64_t>("bar1_mib", 1, kMaxMib);
    model.memory_bus_bits = field.integer("bus_bits", 1, 1 << 16);
    if (model.reserved_mib >= model.memory_mib) memory.mistake("reserved_mib", "must be less than mib");
  });
  required.object("pci", [&](Decoder& pci, const Required& field) {
    model.pci_device = field.integer<std::uint32_t>("device", 0, 0xffff) << 16 | kNvidia;
    model.pci_subsystem = field.integer<std::uint32_t>("subsystem", 0, 0xffff) << 16 | kNvidia;
    model.pcie_generation = field.integer("generation", 1, 6);
    model.pcie_lanes = static_cast<int>(pci.integer("lanes", 1, 16).value_or(16));
  });
  required.object("power_w", [&](Decoder&, const Required& field) {
    model.power_limit_w = field.integer("limit", 1, 10000);
    model.power_min_w = field.integer("min", 1, model.power_limit_w);
    model.power_idle_w = field.integer("idle", 0, model.power_limit_w);
  });
  required.object("clock_mhz", [&](Decoder&, const Required& field) {
    model.clock_graphics_mhz = field.integer("graphics", 1, 10000);
    model.clock_memory_mhz = field.integer("memory", 1, 100000);
    model.clock_idle_mhz = field.integer("idle", 0, model.clock_graphics_mhz);
  });
  required.object("temperature_c", [&](Decoder&, const Required& field) {
    model.temperature_idle_c = field.integer("idle", 0, 150);
    model.temperature_slowdown_c = field.integer("slowdown", 0, 150);
    model.temperature_shutdown_c = field.integer("shutdown", 0, 150);
  });
}

MigProfile decode_mig_profile(Decoder& decoder, Errors& errors) {
  const Required required(decoder, errors);
  MigProfile mig;
  mig.name = required.string("name");
  mig.slices = required.integer("slices", 1, 7);
  mig.id = required.integer("id", 0, 1000);
  mig.instances = required.integer("instances", 1, 7);
  mig.multiprocessors = required.integer("multiprocessors", 1, 1 << 12);
  mig.copy_engines = required.integer("copy_engines", 0, 64);
  mig.decoders = required.integer("decoders", 0, 64);
  mig.memory_mib = required.integer<std::uint64_t>("memory_mib", 1, kMaxMib);
  decoder.finish();
  return mig;
}

std::map<std::string, Model> decode_models(Decoder& root, const json& document, Errors& errors) {
  std::map<std::string, Model> models;
  if (!root.object("models") || !document.at("models").is_object()) return models;
  for (const auto& [key, value] : document.at("models").items()) {
    Decoder decoder(value, errors, "/models/" + key);
    const Required required(decoder, errors);
    Model& model = models[key];
    decode_card(decoder, required, model);
    decode_limits(required, model);
    for (auto& mig : decoder.objects("mig")) model.mig.push_back(decode_mig_profile(mig, errors));
    decoder.finish();
  }
  return models;
}

PciAddress decode_pci(Decoder& decoder, const Required& required) {
  const auto text = required.string("pci");
  if (text.empty()) return {};
  const auto address = parse_pci_address(text);
  if (address) return *address;
  decoder.mistake("pci", address.error().message, address.error().hint);
  return {};
}

/// What tells the GPU from others of its model; made up, always alike, where the profile does not say.
void identify(Gpu& gpu, Decoder& decoder, const Profile& profile) {
  const auto index = static_cast<std::int64_t>(profile.gpus.size());
  gpu.minor = static_cast<int>(decoder.integer("minor", 0, kMaxMinor).value_or(index));
  const auto board = decoder.string("board");
  gpu.multi_gpu_board = board.has_value();
  const auto seed = profile.name + "/" + to_string(gpu.pci);
  const auto board_seed = board ? profile.name + "/board/" + *board : seed;
  gpu.board = static_cast<int>(board ? stable_hash(board_seed) & 0xffff
                                     : gpu.pci.domain << 16 | gpu.pci.bus << 8 | gpu.pci.device);
  gpu.uuid = decoder.string("uuid").value_or("GPU-" + made_up_uuid(seed));
  const bool has_serial = gpu.model.brand != "geforce";
  gpu.serial = decoder.string("serial").value_or(has_serial ? made_up_serial(board_seed) : "");
}

Gpu decode_gpu(Decoder& decoder, const Profile& profile, const std::map<std::string, Model>& models,
               Errors& errors) {
  const Required required(decoder, errors);
  Gpu gpu;
  const auto model = required.string("model");
  if (const auto found = models.find(model); found != models.end())
    gpu.model = found->second;
  else if (!model.empty())
    decoder.mistake("model", "no such model '" + model + "'", "describe it under /models");
  gpu.pci = decode_pci(decoder, required);
  if (!profile.gpus.empty() && profile.gpus.back().pci >= gpu.pci)
    decoder.mistake("pci", "GPUs must be listed by PCI address, each once", "NVML counts them in that order");
  gpu.numa = required.integer("numa", 0, 1023);
  if (!lists_numa_node(profile.host, gpu.numa))
    decoder.mistake("numa", "no such NUMA node", "list it under /host/numa");
  gpu.bridges = decoder.string_list("bridges").value_or(std::vector<std::string>());
  if (gpu.bridges.empty()) decoder.mistake("bridges", "must name at least the host bridge");
  gpu.mig = decoder.boolean("mig").value_or(false);
  if (gpu.mig && gpu.model.mig.empty()) decoder.mistake("mig", "a GPU of this model cannot be cut up");
  gpu.cpu_links = static_cast<int>(decoder.integer("cpu_links", 0, kMaxLinks).value_or(0));
  identify(gpu, decoder, profile);
  decoder.finish();
  return gpu;
}

void refuse_duplicates(const Profile& profile, Errors& errors) {
  std::set<std::string> uuids;
  std::set<int> minors;
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    const auto path = "/gpus/" + std::to_string(i);
    if (!uuids.insert(profile.gpus[i].uuid).second)
      errors.push_back({ErrorKind::kInvalid, "two GPUs have this UUID", "", path + "/uuid"});
    if (!minors.insert(profile.gpus[i].minor).second)
      errors.push_back({ErrorKind::kInvalid, "two GPUs have this minor number", "", path + "/minor"});
  }
}

std::vector<std::vector<int>> decode_links(Decoder& root, std::size_t gpus) {
  std::vector<std::vector<int>> links(gpus, std::vector<int>(gpus, 0));
  const auto rows = root.string_list("links");
  if (!rows) return links;
  if (rows->size() != gpus) {
    root.mistake("links", "expected one row per GPU, found " + std::to_string(rows->size()));
    return links;
  }
  for (std::size_t i = 0; i < gpus; ++i) {
    std::istringstream row((*rows)[i]);
    bool valid = true;
    for (std::size_t j = 0; j < gpus; ++j)
      valid = valid && row >> links[i][j] && links[i][j] >= 0 && links[i][j] <= kMaxLinks;
    if (!valid || !(row >> std::ws).eof())
      root.mistake("links", "row " + std::to_string(i) + " must be " + std::to_string(gpus) + " counts");
  }
  for (std::size_t i = 0; i < gpus; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      if (links[i][j] != links[j][i] || (i == j && links[i][j] != 0))
        root.mistake("links", "row " + std::to_string(i) + ", column " + std::to_string(j) +
                                  (i == j ? " must be 0" : " differs from its mirror image"));
  return links;
}

NvLink decode_nvlink(Decoder& root, Errors& errors) {
  NvLink nvlink;
  auto decoder = root.object("nvlink");
  if (!decoder) return nvlink;
  const Required required(*decoder, errors);
  nvlink.version = required.integer("version", 1, 4);
  nvlink.speed_mbps = required.integer("speed_mbps", 1, 1 << 20);
  for (const auto& text : decoder->string_list("switches").value_or(std::vector<std::string>())) {
    if (const auto address = parse_pci_address(text); address)
      nvlink.switches.push_back(*address);
    else
      decoder->mistake("switches", address.error().message, address.error().hint);
  }
  decoder->finish();
  return nvlink;
}

std::optional<Fabric> decode_fabric(Decoder& root) {
  auto decoder = root.object("fabric");
  if (!decoder) return std::nullopt;
  Fabric fabric;
  if (const auto text = decoder->string("cluster")) {
    if (const auto bytes = uuid_bytes(*text))
      fabric.cluster = *bytes;
    else
      decoder->mistake("cluster", "expected a UUID, found '" + *text + "'");
  }
  fabric.clique = static_cast<std::uint32_t>(decoder->integer("clique", 0, UINT32_MAX).value_or(0));
  decoder->finish();
  return fabric;
}

/// A GPU has so many NVLinks at most, and none on a machine that does not say of what kind they are.
void check_link_counts(Decoder& root, const Profile& profile) {
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    const auto& row = profile.links[i];
    const int peers = profile.nvlink.switches.empty() ? std::accumulate(row.begin(), row.end(), 0)
                                                      : *std::max_element(row.begin(), row.end());
    const int links = peers + profile.gpus[i].cpu_links;
    if (links > kMaxLinks)
      root.mistake("links",
                   "GPU " + std::to_string(i) + " has more than " + std::to_string(kMaxLinks) + " NVLinks");
    if (links > 0 && profile.nvlink.version == 0)
      root.mistake("nvlink", "is missing, but GPU " + std::to_string(i) + " has NVLinks");
  }
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    const auto dash = range.find('-');
    int first = 0;
    int last = 0;
    const bool valid =
        parse_whole(range.substr(0, dash), first) &&
        (dash == std::string::npos ? (last = first, true) : parse_whole(range.substr(dash + 1), last));
    if (!valid || first < 0 || last < first || last >= kMaxCpus || (!cpus.empty() && first <= cpus.back()))
      return fail(ErrorKind::kInvalid, "not an ascending list of CPUs: '" + text + "'",
                  "write it like \"0-3,8\"");
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

Result<PciAddress> parse_pci_address(const std::string& text) {
  PciAddress address;
  std::vector<std::string> parts;
  std::istringstream stream(text.substr(0, text.rfind('.')));
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  const auto dot = text.rfind('.');
  const bool valid = parts.size() == 3 && parse_whole(parts[0], address.domain, 16) &&
                     parse_whole(parts[1], address.bus, 16) && address.bus <= 0xff &&
                     parse_whole(parts[2], address.device, 16) && address.device <= 0x1f &&
                     (dot == std::string::npos || text.substr(dot) == ".0");
  if (!valid)
    return fail(ErrorKind::kInvalid, "not a PCI address: '" + text + "'", "write it like 0000:82:00.0");
  return address;
}

std::string to_string(const PciAddress& address, int domain_digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%0*X:%02X:%02X.0", domain_digits, address.domain, address.bus,
                address.device);
  return text.data();
}

std::optional<std::size_t> gpu_named(const Profile& profile, const std::string& key) {
  const auto pci = parse_pci_address(key);
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    const auto& gpu = profile.gpus[i];
    if (key == std::to_string(i) || key == gpu.uuid || (pci && *pci == gpu.pci)) return i;
  }
  return std::nullopt;
}

std::string made_up_uuid(const std::string& seed) {
  const auto high = stable_hash(seed);
  const auto low = stable_hash(seed + "/uuid");
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-4%03x-%04x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xfff),
                static_cast<unsigned>(0x8000 | (low >> 48 & 0x3fff)), low & 0xffffffffffffULL);
  return text.data();
}

Result<Profile> decode_profile(const json& document, std::string_view what) {
  Errors errors;
  Decoder root(document, errors);
  const Required required(root, errors);
  Profile profile;
  profile.name = required.string("name");
  profile.description = root.string("description").value_or("");
  required.object("driver", [&](Decoder& driver, const Required& field) {
    profile.driver_version = field.string("version");
    std::tie(profile.cuda_major, profile.cuda_minor) = dotted(driver, field, "cuda");
  });
  required.object(
      "host", [&](Decoder& host, const Required& field) { profile.host = decode_host(host, field, errors); });
  const auto models = decode_models(root, document, errors);
  if (root.value("gpus") == nullptr) root.mistake("gpus", "is missing", "a machine without GPUs has []");
  auto gpus = root.objects("gpus");
  if (gpus.size() > kMaxGpus)
    root.mistake("gpus", "a machine has at most " + std::to_string(kMaxGpus) + " GPUs");
  for (auto& gpu : gpus) profile.gpus.push_back(decode_gpu(gpu, profile, models, errors));
  refuse_duplicates(profile, errors);
  profile.nvlink = decode_nvlink(root, errors);
  profile.fabric = decode_fabric(root);
  profile.links = decode_links(root, profile.gpus.size());
  check_link_counts(root, profile);
  root.finish();
  if (!errors.empty()) return Failure(join_mistakes(errors, what));
  return profile;
}

Result<Profile> load_profile(const std::filesystem::path& file) {
  DROVER_TRY(const json document, read_yaml(file));
  return decode_profile(document, "'" + file.string() + "'");
}

}  // namespace drover::sim
