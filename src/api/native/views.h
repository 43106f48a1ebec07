#pragma once

// How the native API shows what the daemon says. Field by field in docs/openapi.yaml. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/log_reader.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "base/sandbox.h"
#include "engine/api.h"
#include "engine/images.h"
#include "gpu/device.h"

namespace drover::api {

/// As text: every event goes to everybody who follows.
std::string text_of(const engine::EventView& event);
/// What a table of tasks shows of one: its record without what it runs and how.
void write_summary(JsonWriter& writer, const control::TaskRecord& record);
nlohmann::json view(const engine::NodeView& node);
nlohmann::json view(const engine::ExplanationView& explanation);
nlohmann::json view(const engine::PlanView& plan);
nlohmann::json view(const engine::QueueView& queue);
nlohmann::json view(const engine::QuotaView& quota);
nlohmann::json view(const FileInfo& file);
nlohmann::json view(const engine::NamedImage& image);
nlohmann::json view(const engine::ImageDetails& details);
nlohmann::json view(const engine::PullProgress& progress);
nlohmann::json view(const std::vector<Error>& problems);
/// The GPUs, who holds each, and what is wrong with the machine.
nlohmann::json view_gpus(const std::vector<engine::Views::Machine>& machines,
                         const std::vector<engine::Views::Holder>& holders);
/// The GPUs and how each pair is joined, as `nvidia-smi topo -m` names it.
nlohmann::json view_topology(const std::vector<engine::Views::Machine>& machines);
/// Bytes of a file: as text where they are UTF-8, else as base64; "encoding" says which.
nlohmann::json view_bytes(const std::string& bytes);

}  // namespace drover::api
