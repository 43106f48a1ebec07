#pragma once

// A connection to a gRPC server at a unix socket.

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <string>

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace drover::kube {

/// Shares nothing with other channels: after a failure gRPC makes those that go to one address wait longer
/// and longer, and a kubelet that has started again should hear of us at once.
std::shared_ptr<grpc::Channel> connect_to(const std::string& socket);

/// The call ends with DEADLINE_EXCEEDED after that long.
void give_up_after(grpc::ClientContext& context, std::chrono::milliseconds patience);

/// Why a call failed, to follow a colon: what the server said, or that there was none.
std::string why_failed(const grpc::Status& status);

}  // namespace drover::kube
