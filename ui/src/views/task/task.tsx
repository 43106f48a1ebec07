import { useEffect, useState } from "preact/hooks";
import { ask, get, type Refusal } from "../../net/api";
import type { Explanation, Record } from "../../net/types";
import { Later } from "../../parts/later";
import { Link } from "../../parts/route";
import { Trouble } from "../../parts/trouble";
import { bytes, useNow, since } from "../../parts/words";
import { Files } from "./files";
import { Happened } from "./happened";
import { Output, useTask } from "./output";

const kEnded = new Set(["finished", "failed", "killed", "lost"]);
const use = () => import("./use").then(({ Use }) => Use);
const terminal = () => import("./terminal").then(({ Terminal }) => Terminal);

function Why({ id, state }: { id: string; state: string }) {
  const [told, setTold] = useState<Explanation>();
  useEffect(() => {
    let current = true;
    get<Explanation>(`/v1/tasks/${id}/explain`).then((answer) => current && setTold(answer), () => undefined);
    return () => {
      current = false;
    };
  }, [id, state]);
  const helps = new Set(told?.changes.map(({ remedy }) => remedy));
  if (!told || (told.reasons.length === 0 && told.remedies.length === 0)) return null;
  return (
    <section aria-labelledby="why">
      <h2 id="why">{told.place ? `Place ${told.place} in ${told.queue}` : "Why"}</h2>
      <ul>{told.reasons.map((reason) => <li key={reason}>{reason}</li>)}</ul>
      {told.remedies.length === 0 ? null : (
        <>
          <p>What helps:</p>
          <ul>{told.remedies.map((remedy) => <li key={remedy}>{remedy} {helps.has(remedy) ? <Link to={`/submit?like=${id}&heed=${encodeURIComponent(remedy)}`}>Submit it so</Link> : null}</li>)}</ul>
        </>
      )}
    </section>
  );
}

function Granted({ record }: { record: Record }) {
  if (record.grants.length === 0) return null;
  return (
    <ul>
      {record.grants.map((grant) => (
        <li key={grant.gpu}><code>{grant.gpu}</code> {grant.milli < 1000 ? `${bytes(grant.memory)}, ${grant.tier ?? "counted"}` : "all of it"}</li>
      ))}
    </ul>
  );
}

function Definition({ record }: { record: Record }) {
  return <pre class="output" role="region" tabIndex={0} aria-label="Definition">{JSON.stringify(record.task, null, 2)}</pre>;
}

const kParts = [["", "Output"], ["use", "Use"], ["files", "Files"], ["terminal", "Terminal"], ["events", "Events"], ["definition", "Definition"]] as const;

export function Task({ id, part }: { id: string; part: string }) {
  const { record, lines, refused } = useTask(id);
  const [trouble, setTrouble] = useState<Refusal>();
  const now = useNow();
  if (!record) return <><h1><code>{id}</code></h1><Trouble of={refused} /></>;
  const { task } = record;
  const over = kEnded.has(record.state);
  const stop = (force: boolean) => ask("POST", `/v1/tasks/${task.id}/stop`, { force }).then(() => setTrouble(undefined), setTrouble);
  const lasted = since(record.started_at ?? record.submitted_at, record.finished_at ? Date.parse(record.finished_at) : now);
  return (
    <>
      <h1>{task.name} <code>{task.id}</code></h1>
      <p><span class={`state ${record.state}`}>{record.state}</span> {over ? "after" : "for"} {lasted}{record.node ? `, on ${record.node}` : ""}. {record.reason}</p>
      <Trouble of={trouble} />
      <p class="tools">
        {over ? null : <button type="button" onClick={() => stop(false)}>Stop</button>}
        {over || record.state !== "stopping" ? null : <button type="button" onClick={() => stop(true)}>Stop at once</button>}
        <Link to={`/submit?like=${task.id}`}>Submit another like it</Link>
      </p>
      <Granted record={record} />
      <Why id={task.id} state={record.state} />
      <nav class="parts" aria-label="Of the task">
        {kParts.map(([name, title]) => <Link key={name} to={`/tasks/${id}${name ? `/${name}` : ""}`} exact>{title}</Link>)}
      </nav>
      {part === "" ? <Output lines={lines} />
        : part === "use" ? <Later view={use} id={id} over={over} />
        : part === "files" ? <Files id={id} />
        : part === "terminal" ? (record.state === "running" ? <Later view={terminal} id={id} /> : <p>It takes a task that runs.</p>)
        : part === "events" ? <Happened id={id} />
        : <Definition record={record} />}
    </>
  );
}
