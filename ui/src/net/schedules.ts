// Jobs that run by a schedule, as long as a view wants them.

import { Calm } from "./calm";
import type { MachineEvent } from "./live";
import type { Job, PartOf, Statistics } from "./types";
import { get } from "./api";

const kApi = "/v1/scheduler";

export interface JobState extends Job { state: string }

/** Names of jobs have no '/', and ids of services begin with one. */
const ofJob = (event: MachineEvent & PartOf, name?: string) =>
  event.part_of !== undefined && (name ? event.part_of === name : event.part_of !== "" && !event.part_of.startsWith("/"));

async function findJobs(): Promise<JobState[]> {
  const [jobs, summary] = await Promise.all([get<Job[]>(`${kApi}/jobs`), get<{ jobs: { name: string; state: string }[] }>(`${kApi}/jobs/summary`)]);
  const states = new Map(summary.jobs.map(({ name, state }) => [name, state]));
  return jobs.map((job) => ({ ...job, state: states.get(job.name) ?? "" }));
}

export const jobs = new Calm(findJobs, (event) => ofJob(event));
export const runsOf = (name: string) => new Calm(() => get<Statistics>(`${kApi}/job/stat/${encodeURIComponent(name)}`), (event) => ofJob(event, name));
export const jobPath = (name: string) => `${kApi}/job/${encodeURIComponent(name)}`;
export const killPath = (name: string) => `${kApi}/task/kill/${encodeURIComponent(name)}`;
export const definePath = (job: Job) => `${kApi}/${job.parents ? "dependency" : "iso8601"}`;

/** The next run, where the daemon says it: the start in "R/2030-01-31T02:30:00Z/P1D". When cron's is next it does not say. */
export function nextOf({ schedule, disabled }: Job): Date | undefined {
  const parts = schedule?.split("/") ?? [];
  if (disabled || parts.length !== 3 || parts[0] === "R0") return undefined;
  const time = new Date(parts[1]!);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/** "day" of "P1D", "2 hours" of "PT2H"; what has several parts stays as it is written. */
function periodOf(text: string): string {
  const [, time, number, unit] = /^P(T?)(\d+)([YMWDHS])$/.exec(text) ?? [];
  if (!unit) return text;
  const word = { Y: "year", M: time ? "minute" : "month", W: "week", D: "day", H: "hour", S: "second" }[unit]!;
  return number === "1" ? word : `${number} ${word}s`;
}

/** When it runs, in words. */
export function timesOf(job: Job): string {
  if (job.parents) return `after ${job.parents.join(", ")}`;
  const parts = job.schedule?.split("/") ?? [];
  if (parts.length !== 3) return job.schedule ?? "";
  const left = parts[0]!.slice(1);
  return left === "0" ? "all its runs have been" : `every ${periodOf(parts[2]!)}${left ? `, ${left} times more` : ""}`;
}

/** How it went last. */
export function resultOf({ lastSuccess, lastError }: Job): { word: string; at: string } | undefined {
  if (!lastSuccess && !lastError) return undefined;
  return lastSuccess && lastSuccess >= lastError ? { word: "finished", at: lastSuccess } : { word: "failed", at: lastError };
}

/** "11/29/26 13:18:07", in UTC; undefined of "N/A". */
export function chronosTime(text: string): string | undefined {
  const [, month, day, year, time] = /^(\d\d)\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d)$/.exec(text) ?? [];
  return time ? `20${year}-${month}-${day}T${time}Z` : undefined;
}
