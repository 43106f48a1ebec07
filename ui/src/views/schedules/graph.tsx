// Which jobs run after which: the same as a picture and as a table.

import type { JobState } from "../../net/schedules";
import { JobLink } from "../../parts/links";
import { List } from "../../parts/list";

const kMost = 200; // jobs in the picture
const kWide = 170, kHigh = 32, kBetween = 60, kBelow = 14, kEdge = 8, kLetters = 20;

interface Place { x: number; y: number }

/** How many stand before it at most, one after the other. Nothing waits for itself, as the daemon sees to. */
function depths(jobs: JobState[]): Map<string, number> {
  const parents = new Map(jobs.map((job) => [job.name, job.parents ?? []]));
  const known = new Map<string, number>();
  const depthOf = (name: string, seen: number): number => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const above = seen > jobs.length ? [] : (parents.get(name) ?? []).filter((each) => parents.has(each));
    const depth = above.length === 0 ? 0 : 1 + Math.max(...above.map((each) => depthOf(each, seen + 1)));
    known.set(name, depth);
    return depth;
  };
  for (const name of parents.keys()) depthOf(name, 0);
  return known;
}

function places(jobs: JobState[]): Map<string, Place> {
  const columns: number[] = [];
  return new Map([...depths(jobs)].map(([name, column]) => {
    const row = columns[column] ?? 0;
    columns[column] = row + 1;
    return [name, { x: kEdge + column * (kWide + kBetween), y: kEdge + row * (kHigh + kBelow) }];
  }));
}

const shortened = (name: string) => (name.length > kLetters ? `${name.slice(0, kLetters - 1)}…` : name);

function Picture({ jobs }: { jobs: JobState[] }) {
  const at = places(jobs);
  const all = [...at.values()];
  const width = Math.max(...all.map(({ x }) => x)) + kWide + kEdge, height = Math.max(...all.map(({ y }) => y)) + kHigh + kEdge;
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Picture of what runs after what">
      <svg class="graph" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label="Which jobs run after which; the table has the same">
        <defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
        {jobs.flatMap((job) => (job.parents ?? []).map((parent) => {
          const from = at.get(parent), to = at.get(job.name);
          if (!from || !to) return null;
          const [x1, y1, x2, y2] = [from.x + kWide, from.y + kHigh / 2, to.x, to.y + kHigh / 2];
          return <path key={`${parent} ${job.name}`} class="edge" d={`M${x1} ${y1}C${x1 + kBetween / 2} ${y1} ${x2 - kBetween / 2} ${y2} ${x2} ${y2}`} marker-end="url(#tip)" />;
        }))}
        {jobs.map((job) => {
          const { x, y } = at.get(job.name)!;
          return (
            <svg key={job.name} x={x} y={y} width={kWide} height={kHigh} class={job.disabled ? "off" : ""}>
              <title>{job.name}</title>
              <rect x={1} y={1} width={kWide - 2} height={kHigh - 2} rx={5} />
              <text x={10} y={kHigh / 2 + 5}>{shortened(job.name)}</text>
            </svg>
          );
        })}
      </svg>
    </div>
  );
}

const links = (names: string[]) => names.length === 0 ? "–" : names.map((name) => <span key={name} class="pair"><JobLink name={name} /></span>);

/** `of`: only what this job waits for, and what waits for it, near or far. */
export function Graph({ jobs, of }: { jobs: JobState[]; of?: string }) {
  const above = new Set(jobs.flatMap((job) => job.parents ?? []));
  let joined = jobs.filter((job) => job.parents || above.has(job.name));
  if (of !== undefined) {
    const near = related(joined, of);
    joined = joined.filter((job) => near.has(job.name));
  }
  if (joined.length === 0) return null;
  const after = new Map<string, string[]>();
  for (const job of joined) for (const parent of job.parents ?? []) after.set(parent, [...(after.get(parent) ?? []), job.name]);
  return (
    <section aria-labelledby="graph">
      <h2 id="graph">One after the other</h2>
      {joined.length > kMost ? <p>{joined.length} jobs are too many for a picture: the table has them.</p> : <Picture jobs={joined} />}
      <List label="What runs after what" heads={["Job", "Runs after", "Before"]} rows={joined} keyOf={(job) => job.name} cells={(job) => [links([job.name]), links(job.parents ?? []), links(after.get(job.name) ?? [])]} />
    </section>
  );
}

function related(jobs: JobState[], of: string): Set<string> {
  const parents = new Map(jobs.map((job) => [job.name, job.parents ?? []]));
  const children = new Map<string, string[]>();
  for (const job of jobs) for (const parent of job.parents ?? []) children.set(parent, [...(children.get(parent) ?? []), job.name]);
  const all = new Set<string>();
  const walk = (next: Map<string, string[]>) => {
    const seen = new Set([of]), open = [of];
    for (let name = open.pop(); name !== undefined; name = open.pop())
      for (const other of next.get(name) ?? []) if (!seen.has(other)) open.push(...[other].filter((each) => seen.add(each)));
    for (const name of seen) all.add(name);
  };
  walk(parents);
  walk(children);
  return all;
}
