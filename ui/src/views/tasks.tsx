import { useMemo, useState } from "preact/hooks";
import { tasks, useShared } from "../net/state";
import type { TaskSummary } from "../net/types";
import { List } from "../parts/list";
import { Link } from "../parts/route";
import { Trouble } from "../parts/trouble";
import { count, since, useNow } from "../parts/words";

const kHeads = ["State", "Task", "User", "Queue", "Priority", "GPUs", "For", "Why"];
const kWaits = new Set(["queued", "blocked"]);

function share({ task }: TaskSummary): string {
  const part = task.gpu_share;
  if (!part) return String(task.gpus);
  return `${task.gpus} × ${part.memory_bytes ? `${Math.round(part.memory_bytes / 2 ** 20)} MiB` : (part.milli ?? 0) / 1000}`;
}

function matches(row: TaskSummary, wanted: string): boolean {
  return [row.task.name, row.task.id, row.task.user.name, row.task.queue, row.reason].some((text) => text.toLowerCase().includes(wanted));
}

export function Tasks() {
  const seen = useShared(tasks);
  const now = useNow();
  const [wanted, setWanted] = useState("");
  const [which, setWhich] = useState("all");
  const all = seen.value ?? [];
  const rows = useMemo(() => all.filter((row) => (which === "all" || kWaits.has(row.state) === (which === "waiting")) && (wanted === "" || matches(row, wanted.toLowerCase()))),
    [all, wanted, which]);
  const waiting = all.filter((row) => kWaits.has(row.state)).length;
  return (
    <>
      <h1>{seen.value ? `${count(all.length - waiting, "task")} run, ${waiting} wait` : "Tasks"}</h1>
      <Trouble of={seen.trouble} />
      <div class="tools">
        <input type="search" aria-label="Only tasks with" placeholder="Only tasks with" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        <select aria-label="Which tasks" value={which} onChange={(event) => setWhich(event.currentTarget.value)}>
          <option value="all">All</option><option value="running">Those that run</option><option value="waiting">Those that wait</option>
        </select>
      </div>
      {seen.value && all.length === 0 ? <p>Nothing runs, and nothing waits. <Link to="/submit">Submit a task</Link>, or say <code>drover run --gpus 1 -- COMMAND</code></p> : null}
      {all.length > 0 ? (
        <List label="Tasks" heads={kHeads} rows={rows} keyOf={(row) => row.task.id} cells={(row) => [
          <span class={`state ${row.state}`}>{row.state}</span>, <Link to={`/tasks/${row.task.id}`}>{row.task.name} <code>{row.task.id}</code></Link>, row.task.user.name, row.task.queue,
          row.task.priority, share(row), since(row.started_at ?? row.submitted_at, now), row.reason]} />
      ) : null}
    </>
  );
}
