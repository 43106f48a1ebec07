#include "kube/rpc/channel.h"

#include <grpcpp/grpcpp.h>

namespace drover::kube {
namespace {

constexpr int kMostAnswerBytes = 16 << 20;  // the kubelet's own limit

}  // namespace

std::shared_ptr<grpc::Channel> connect_to(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

void give_up_after(grpc::ClientContext& context, std::chrono::milliseconds patience) {
  context.set_deadline(std::chrono::system_clock::now() + patience);
}

std::string why_failed(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return "nobody answers there";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "no answer came in time";
    default:
      return status.error_message();
  }
}

}  // namespace drover::kube
