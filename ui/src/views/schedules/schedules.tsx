import { jobPath, jobs, timesOf } from "../../net/schedules";
import { useShared } from "../../net/state";
import { ask } from "../../net/api";
import { useDeeds } from "../../parts/deeds";
import { JobLink } from "../../parts/links";
import { List } from "../../parts/list";
import { Named } from "../../parts/named";
import { usePath } from "../../parts/route";
import { Trouble } from "../../parts/trouble";
import { count } from "../../parts/words";
import { Calendar } from "./calendar";
import { Graph } from "./graph";
import { Schedule } from "./schedule";
import { Last, Next } from "./times";

const kPath = "/schedules";
const kHeads = ["Job", "State", "Last", "Next run", "Runs", "Change"];

function All() {
  const seen = useShared(jobs), deeds = useDeeds(), known = seen.value ?? [];
  const running = known.filter((job) => job.state.endsWith("running")).length;
  const run = (name: string) => deeds.run(async () => {
    await ask("PUT", jobPath(name));
    return `${name} runs, besides its schedule.`;
  });
  return (
    <>
      <h1>{seen.value ? `${count(known.length, "job")}, ${running} running` : "Schedules"}</h1>
      {deeds.shown}
      <Trouble of={seen.trouble} />
      {seen.value && known.length === 0 ? <p>There are no jobs. <code>drover init job nightly.yaml</code> writes one to start from, and <code>drover apply nightly.yaml</code> sets it.</p> : null}
      {known.length === 0 ? null : (
        <>
          <List label="Jobs" heads={kHeads} rows={known} keyOf={(job) => job.name} cells={(job) => [
            <JobLink name={job.name} />, job.disabled ? "disabled" : job.state, <Last of={job} />, <Next of={job} />, <Named>{timesOf(job)}</Named>,
            <button type="button" class="other small" aria-label={`Run now: ${job.name}`} onClick={() => run(job.name)}>Run now</button>]} />
          <Calendar jobs={known} />
          <Graph jobs={known} />
        </>
      )}
    </>
  );
}

export function Schedules() {
  const name = usePath().slice(kPath.length + 1);
  return name ? <Schedule key={name} name={name} /> : <All />;
}
