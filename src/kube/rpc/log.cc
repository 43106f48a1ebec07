#include "kube/rpc/log.h"

#include <grpc/support/log.h>

namespace drover::kube {

void silence_grpc() {
  ::gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace drover::kube
