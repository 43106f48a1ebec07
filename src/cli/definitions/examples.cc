#include "cli/definitions/examples.h"

namespace drover::cli {
namespace {

constexpr std::string_view kApp =
    R"(# An app is kept running: so many instances, started again when they end.
#   drover validate app.yaml    is it right?
#   drover apply app.yaml       run it, or change what runs
#   drover app show /hello      how is it?
#   drover app remove /hello
kind: app
id: /hello
cmd: while true; do echo "I am here, with GPU $NVIDIA_VISIBLE_DEVICES"; sleep 10; done
instances: 1
gpus: 1       # whole GPUs of each instance
cpus: 0.5
mem: 128      # MiB

# What you may want besides:
# env: {MODE: "fast", WORKERS: "4"}         # values are text: numbers stand in quotes
# container: {docker: {image: "python:3.12"}}
# portDefinitions: [{port: 0, name: http}]  # the command finds it as $PORT0
# healthChecks: [{protocol: HTTP, path: /, gracePeriodSeconds: 30}]
)";

constexpr std::string_view kJob =
    R"(# A job runs by a schedule, or after other jobs.
#   drover validate job.yaml    is it right?
#   drover apply job.yaml       make it known
#   drover job run nightly      run it now
#   drover job history nightly
kind: job
name: nightly
command: echo "I have GPU $NVIDIA_VISIBLE_DEVICES"
schedule: R/2030-01-31T02:30:00Z/P1D   # for ever, from then on, each day
scheduleTimeZone: Europe/Berlin
gpus: 1
cpus: 0.5
mem: 128      # MiB
retries: 2    # of a run that failed

# What you may want besides:
# parents: [nightly]                   # in place of schedule: after these jobs
# environmentVariables: [{name: MODE, value: fast}]
# container: {type: DOCKER, image: "python:3.12"}
)";

constexpr std::string_view kTask =
    R"(# A task runs once.
#   drover validate task.yaml            is it right?
#   drover apply --dry-run task.yaml     would the daemon take it?
#   drover apply task.yaml               submit it; each time it is a new task
#   drover logs -f hello
kind: task
name: hello
command: [sh, -c, 'echo "I have GPU $NVIDIA_VISIBLE_DEVICES"']   # word by word
gpus: 1       # or a part of one: 0.5

# What you may want besides:
# cpus: 4                              # else its GPUs' part of the machine
# mem: 16GiB                           # the same
# image: python:3.12                   # else the machine's own programs
# working_directory: .                 # where this file lies; else its sandbox
# env: {MODE: "fast", WORKERS: "4"}    # values are text: numbers stand in quotes
# gpu_model: A100
# timeout: 1h30m
# queue: default
# priority: 10
)";

constexpr std::string_view kGang =
    R"(# The members of a gang start all at once or not at all, and end together.
#   drover validate gang.yaml   is it right?
#   drover apply gang.yaml      submit it; each time it is a new gang
#   drover logs -f pair
kind: gang
name: pair
command: [sh, -c, 'echo "I am $RANK of $WORLD_SIZE"']   # word by word
gang:
  size: 2
# All else is said of each member:
gpus: 0.5     # a part of a GPU; or so many: 1

# What you may want besides:
# cpus: 4
# mem: 16GiB
# image: python:3.12
# interconnect: nvlink                 # with several GPUs each
# timeout: 1h30m
)";

}  // namespace

constexpr std::array<ExampleFile, 4> kExampleFiles = {{
    {"app", "app", kApp},
    {"job", "job", kJob},
    {"task", "task", kTask},
    {"gang", "task", kGang},
}};

}  // namespace drover::cli
