import { useMemo } from "preact/hooks";
import { chronosTime, definePath, jobPath, jobs, killPath, runsOf, timesOf, type JobState } from "../../net/schedules";
import { useShared } from "../../net/state";
import type { Run, Statistics } from "../../net/types";
import { ask, get } from "../../net/api";
import { useDeeds } from "../../parts/deeds";
import { Field } from "../../parts/field";
import { TaskLink } from "../../parts/links";
import { List } from "../../parts/list";
import { Moment } from "../../parts/moment";
import { Named, Said } from "../../parts/named";
import { Link } from "../../parts/route";
import { Trouble } from "../../parts/trouble";
import { Graph } from "./graph";
import { Last, Next } from "./times";

const kHeads = ["Run", "How", "Began", "Took", "Why"];
const kWords: { [status: string]: [string, string] } = { Success: ["succeeded", "finished"], Fail: ["failed", "failed"], Running: ["running", "running"], Idle: ["waits", "queued"] };

function Tools({ job, deeds }: { job: JobState; deeds: ReturnType<typeof useDeeds> }) {
  const run = (event: SubmitEvent) => {
    event.preventDefault();
    const words = String(new FormData(event.currentTarget as HTMLFormElement).get("arguments"));
    deeds.run(async () => {
      await ask("PUT", `${jobPath(job.name)}${words ? `?arguments=${encodeURIComponent(words)}` : ""}`);
      return "It runs, besides its schedule.";
    });
  };
  /** The definition as it is now, with one word changed: the daemon keeps counts and history. */
  const enable = () => deeds.run(async () => {
    const now = await get<JobState>(jobPath(job.name));
    await ask("POST", definePath(now), { ...now, disabled: !job.disabled });
    jobs.refresh();
    return job.disabled ? "It runs by its schedule again." : "Its times pass without a run.";
  });
  const kill = () => deeds.ask({
    title: "End its runs?",
    verb: "End them",
    says: <p>The runs of <Named>{job.name}</Named> that are there now end. They count neither as failed nor as successful.</p>,
    deed: async () => {
      await ask("DELETE", killPath(job.name));
      return "Its runs end.";
    },
  });
  return (
    <div class="tools">
      <form class="tools" onSubmit={run}>
        <Field label="Words behind its command" name="arguments" />
        <button type="submit">Run now</button>
      </form>
      <button type="button" class="other" onClick={enable}>{job.disabled ? "Enable" : "Disable"}</button>
      {job.state === "idle" ? null : <button type="button" class="other" onClick={kill}>End its runs …</button>}
    </div>
  );
}

function RunState({ of: { status } }: { of: Run }) {
  const [word, tone] = kWords[status] ?? [status, ""];
  return <span class={`state ${tone}`}>{word}</span>;
}

function History({ of: { taskStatHistory, skippedRuns = [] } }: { of: Statistics }) {
  return (
    <section aria-labelledby="history">
      <h2 id="history">Runs</h2>
      {taskStatHistory.length === 0 ? <p>It never ran.</p> : (
        <List label="All runs" heads={kHeads} rows={taskStatHistory} keyOf={(run) => run.taskId} cells={(run) => [
          <TaskLink id={run.taskId} />, <RunState of={run} />, <Moment at={chronosTime(run.startTime)} />, run.duration === "N/A" ? "" : run.duration, <Named>{run.reason ?? ""}</Named>]} />
      )}
      {skippedRuns.length === 0 ? null : <ul class="reasons" aria-label="Left out">{skippedRuns.map(({ lastDue, count, reason }) => <li key={lastDue}>{count} left out, the last of <Moment at={lastDue} />: <Said>{reason}</Said></li>)}</ul>}
    </section>
  );
}

export function Schedule({ name }: { name: string }) {
  const all = useShared(jobs), runs = useShared(useMemo(() => runsOf(name), [name])), deeds = useDeeds();
  const job = all.value?.find((each) => each.name === name);
  return (
    <>
      <p><Link to="/schedules">All schedules</Link></p>
      <h1><Named>{name}</Named></h1>
      {deeds.shown}
      <Trouble of={all.trouble ?? runs.trouble} />
      {job ? (
        <>
          <dl class="facts">
            <dt>State</dt><dd>{job.disabled ? "disabled" : job.state}</dd>
            <dt>Runs</dt><dd><Said>{timesOf(job)}</Said>{job.scheduleTimeZone ? `, by the clock of ${job.scheduleTimeZone}` : ""}</dd>
            <dt>Next run</dt><dd><Next of={job} /></dd>
            <dt>Last</dt><dd><Last of={job} />; {job.successCount} succeeded, {job.errorCount} failed</dd>
            {job.command ? <><dt>Command</dt><dd><code class="one"><Said>{job.command}</Said></code></dd></> : null}
          </dl>
          <Tools job={job} deeds={deeds} />
          {runs.value ? <History of={runs.value} /> : null}
          <Graph jobs={all.value!} of={name} />
        </>
      ) : null}
    </>
  );
}
