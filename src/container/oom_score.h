#pragma once

// Whom the kernel kills first when memory runs short: a process's oom_score_adj (proc(5)). What starts with
// one has it for good, unless it is privileged (CAP_SYS_RESOURCE).

namespace drover::container {

/// Of this process; 0 where that cannot be read.
int own_oom_score_adj();

/// `drover with-oom-score 900 PROGRAM ARGUMENTS…` becomes that program. For what starts processes in a
/// container and leaves them the score that it has itself, as crun does for all but the first.
inline constexpr const char* kWithOomScore = "with-oom-score";

/// `arguments` from the score on, with the null pointer at their end. Returns only when it fails: an exit
/// status, after a line on standard error.
int run_with_oom_score(char** arguments);

}  // namespace drover::container
