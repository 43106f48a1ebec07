#pragma once

// What the control plane and the agents of nodes call things between them, for sandboxes that nodes keep.

namespace drover::kube {

/// The CSI driver of sandboxes; its folder below the kubelet's `plugins` too.
inline constexpr const char* kSandboxDriver = "sandbox.drover.dev";
/// Of a Node, "true": its kubelet has the driver.
inline constexpr const char* kSandboxLabel = "sandbox.drover.dev/ready";
/// Of the agent's own pod, "true": commands in it reach the node's sandboxes.
inline constexpr const char* kAgentLabel = "drover.dev/node-agent";
/// Of a volume: "uid:gid", to whom the sandbox belongs.
inline constexpr const char* kSandboxOwner = "owner";
/// In the driver's folder: where the agent tells of sandboxes.
inline constexpr const char* kSandboxSocket = "sandboxes.sock";

}  // namespace drover::kube
