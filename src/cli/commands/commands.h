#pragma once

// The commands of `drover`, each group in a file of its own. Each function adds its commands to the tree.

#include <CLI/App.hpp>

#include "cli/context.h"

namespace drover::cli {

/// Of a command that only shows something.
struct ShowOptions {
  bool json = false;
};

/// The exit status of `run` and `exec` when the command itself was not run, as with `docker run`.
inline constexpr int kNotRun = 125;

void add_log_flags(CLI::App& command, LogOptions& options);  // serve.cc: of whatever serves
void add_serve(CLI::App& app, Context& context);             // serve.cc: serve
void add_run(CLI::App& app, Context& context);               // run.cc: run
void add_plan(CLI::App& app, Context& context);              // plan.cc: plan
void add_sharing(CLI::App& app, Context& context);           // sharing.cc: queue, quota
void add_submit(CLI::App& app, Context& context);            // submit.cc: submit
void add_ps(CLI::App& app, Context& context);                // ps.cc: ps
void add_show(CLI::App& app, Context& context);              // show.cc: show
void add_tasks(CLI::App& app, Context& context);             // tasks.cc: stop, rm, explain, inspect
void add_stats(CLI::App& app, Context& context);             // stats.cc: stats
void add_resize(CLI::App& app, Context& context);            // resize.cc: resize
void add_validate(CLI::App& app, Context& context);          // validate.cc: validate
void add_init(CLI::App& app, Context& context);              // init.cc: init
void add_apply(CLI::App& app, Context& context);             // apply.cc: apply
void add_export(CLI::App& app, Context& context);            // export.cc: export
void add_apps(CLI::App& app, Context& context);              // app.cc: app ls, inspect, scale …
void add_deployments(CLI::App& group, Context& context);     // deployments.cc: app deployments, cancel
void add_jobs(CLI::App& app, Context& context);              // job.cc: job ls, inspect, run …
void add_logs(CLI::App& app, Context& context);              // logs.cc: logs
void add_events(CLI::App& app, Context& context);            // events.cc: events
void add_report(CLI::App& app, Context& context);            // report.cc: report
void add_exec(CLI::App& app, Context& context);              // exec.cc: exec
void add_attach(CLI::App& app, Context& context);            // attach.cc: attach
void add_forward(CLI::App& app, Context& context);           // forward.cc: forward
void add_ui(CLI::App& app, Context& context);                // ui.cc: ui
void add_files(CLI::App& app, Context& context);             // files.cc: files ls, cat, get
void add_images(CLI::App& app, Context& context);            // image.cc: image pull, ls, rm …
void add_image_variants(CLI::App& image, Context& context);  // image_variants.cc: image variants
void add_machine(CLI::App& app, Context& context);           // machine.cc: gpus, topo, node
void add_top(CLI::App& app, Context& context);               // top.cc: top
void add_cordon(CLI::App& app, Context& context);            // cordon.cc: cordon, uncordon, drain
void add_backup(CLI::App& app, Context& context);            // backup.cc: backup, restore
void add_cdi(CLI::App& app, Context& context);               // cdi.cc: cdi, cdi generate, ls
void add_contexts(CLI::App& app, Context& context);          // context.cc: context ls, add, use, rm
void add_kube(CLI::App& app, Context& context);              // kube.cc: kube node
void add_doctor(CLI::App& app, Context& context);            // doctor.cc: doctor, version
void add_completion(CLI::App& app, Context& context);        // completion.cc: completion

}  // namespace drover::cli
