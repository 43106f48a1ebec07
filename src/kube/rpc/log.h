#pragma once

namespace drover::kube {

/// gRPC prints what goes wrong inside of it; whoever calls it tells the same in words. For the whole process.
void silence_grpc();

}  // namespace drover::kube
