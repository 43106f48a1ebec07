import { nextOf, resultOf, timesOf, type JobState } from "../../net/schedules";
import { Moment } from "../../parts/moment";

export function Last({ of }: { of: JobState }) {
  const last = resultOf(of);
  if (!last) return <>never ran</>;
  return <><span class={`state ${last.word}`}>{last.word === "finished" ? "succeeded" : "failed"}</span> <Moment at={last.at} /></>;
}

/** When it runs next, or why that is not told. */
export function Next({ of: job }: { of: JobState }) {
  const next = nextOf(job);
  if (next) return <Moment at={next} />;
  if (job.disabled) return <>disabled</>;
  return <>{job.parents ? "after others" : timesOf(job).startsWith("all its") ? "never" : "by cron"}</>;
}
