#pragma once

// From records to what placement plans with: a task is a job of one, the tasks of a gang are one job. Pure.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/record.h"
#include "placement/schedule.h"

namespace drover::control {

/// The record of a task, or null.
using Find = std::function<const TaskRecord*(const std::string& id)>;

/// Id of a member of a gang.
std::string member_id(const std::string& gang, int rank);
/// Id of the job that a task belongs to: its gang's, or its own.
const std::string& job_id(const workload::Task& task);

/// Id of what the task was submitted with: its array's, its gang's, or its own.
const std::string& submission_id(const workload::Task& task);

/// The records of a task's job that there still are, by rank.
std::vector<const TaskRecord*> members_of(const workload::Task& task, const Find& find);
/// The same for a job's id; none when there is no such job.
std::vector<const TaskRecord*> members_of_job(const std::string& job, const Find& find);
/// Whether these are all members and each of them waits.
bool waits_whole(const std::vector<const TaskRecord*>& members);
/// Whether these are all members and each of them owns its resources.
bool runs_whole(const std::vector<const TaskRecord*>& members);

/// Groups are named by people; nobody comes into those of somebody else.
placement::Request request_of(const workload::Task& task);
/// `machine` tells the memory of GPUs that an older daemon did not write down.
placement::Decision decision_of(const TaskRecord& record, const placement::Node& machine);
/// All of one job, by rank; not empty.
placement::Job job_of(const std::vector<const TaskRecord*>& members);

/// Whether a task has other GPUs, CPUs or NICs than before; null: it was not there. One that is put back may
/// start again at once, elsewhere.
bool moved(const TaskRecord* before, const TaskRecord& after);
/// Makes the cluster hold of jobs, each given by one of its tasks, what their records say: nobody is put
/// where somebody has just left before that one is gone. The members of a gang of which only some run (any
/// more) are held one by one, under their own ids; so are they among the running jobs.
void settle(placement::Cluster& cluster, const std::string& node,
            const std::map<std::string, const workload::Task*>& jobs, const Find& find);
/// The job that a running task stands for: its gang when that runs whole, else itself. None for the later
/// members of a gang that runs whole: its first stands for it.
std::optional<placement::RunningJob> running_job(const TaskRecord& record, const placement::Node& machine,
                                                 const Find& find, TimePoint now);

}  // namespace drover::control
