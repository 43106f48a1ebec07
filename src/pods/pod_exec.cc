#include "pods/pod_exec.h"

#include "kube/client/remote_command.h"

namespace drover::pods {
namespace {

class PodExec final : public container::ExecProcess {
 public:
  explicit PodExec(std::unique_ptr<kube::RemoteCommand> command) : command_(std::move(command)) {}

  int input() const override { return command_->input(); }
  int output() const override { return command_->output(); }
  int errors() const override { return command_->errors(); }
  void close_input() override { command_->close_input(); }
  Status resize(int rows, int columns) override {
    command_->resize(rows, columns);
    return {};
  }
  int process() const override { return command_->ended(); }
  Result<int> wait() override { return command_->wait(); }
  void kill() override { command_->close(); }

 private:
  std::unique_ptr<kube::RemoteCommand> command_;
};

/// Kubernetes' own request knows no variables: `env` of the image sets them.
std::vector<std::string> words_of(const container::ExecRequest& request) {
  if (request.environment.empty()) return request.command;
  std::vector<std::string> words{"env"};
  for (const auto& [name, value] : request.environment) words.push_back(name + "=" + value);
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

}  // namespace

Result<std::unique_ptr<container::ExecProcess>> start_exec(const kube::ServerConfig& server,
                                                           const PodView& pod,
                                                           const container::ExecRequest& request) {
  DROVER_TRY(auto command, kube::RemoteCommand::start(server, {.name_space = pod.name_space,
                                                               .pod = pod.name,
                                                               .container = kContainer,
                                                               .command = words_of(request),
                                                               .tty = request.tty,
                                                               .rows = request.rows,
                                                               .columns = request.columns}));
  return std::make_unique<PodExec>(std::move(command));
}

}  // namespace drover::pods
