// The next runs of a week from today, as far as the daemon says when they are.

import { nextOf, timesOf, type JobState } from "../../net/schedules";
import { JobLink } from "../../parts/links";
import { Named } from "../../parts/named";
import { Moment } from "../../parts/moment";

const kDays = 7;
const kMostOfDay = 50;
const kDay = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const kTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

interface Due { job: JobState; at: Date }

function Runs({ of }: { of: Due[] }) {
  return (
    <ul>
      {of.slice(0, kMostOfDay).map(({ job, at }) => (
        <li key={job.name}><time dateTime={at.toISOString()}>{kTime.format(at)}</time> <JobLink name={job.name} /> <span class="quiet">{timesOf(job)}</span></li>
      ))}
      {of.length > kMostOfDay ? <li>and {of.length - kMostOfDay} more</li> : null}
    </ul>
  );
}

export function Calendar({ jobs }: { jobs: JobState[] }) {
  const due: Due[] = jobs.flatMap((job) => {
    const at = nextOf(job);
    return at ? [{ job, at }] : [];
  }).sort((a, b) => a.at.getTime() - b.at.getTime());
  const today = new Date();
  const days = Array.from({ length: kDays + 1 }, (_, at) => new Date(today.getFullYear(), today.getMonth(), today.getDate() + at));
  const later = due.filter(({ at }) => at >= days[kDays]!);
  const cron = jobs.filter((job) => !job.disabled && job.schedule && !nextOf(job) && !job.schedule.startsWith("R"));
  return (
    <section aria-labelledby="calendar">
      <h2 id="calendar">Next runs</h2>
      <ol class="days">
        {days.slice(0, kDays).map((day, at) => {
          const own = due.filter((each) => each.at < days[at + 1]! && (at === 0 || each.at >= day));
          return <li key={day.toISOString()} class={at === 0 ? "today" : ""} aria-current={at === 0 ? "date" : undefined}><h3>{kDay.format(day)}</h3>{own.length > 0 ? <Runs of={own} /> : <p class="quiet">none</p>}</li>;
        })}
      </ol>
      {later.length === 0 ? null : <p>Later: {later.slice(0, kMostOfDay).map(({ job, at }) => <span key={job.name} class="pair"><JobLink name={job.name} /> <Moment at={at} /></span>)}</p>}
      {cron.length === 0 ? null : <p>By cron, with <code>drover job inspect NAME</code> for the time of the next run: {cron.slice(0, kMostOfDay).map((job) => <span key={job.name} class="pair"><JobLink name={job.name} /> <code><Named>{job.schedule!}</Named></code></span>)}</p>}
    </section>
  );
}
