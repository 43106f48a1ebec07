import { List } from "../parts/list";
import { Trouble } from "../parts/trouble";
import { count, since } from "../parts/words";
import { Link } from "../parts/route";
import { tasks, useShared } from "../net/state";

const kHeads = ["State", "Task", "User", "Queue", "GPUs", "For", "Why"];

export function Tasks() {
  const seen = useShared(tasks);
  const rows = seen.value ?? [];
  const running = rows.filter((row) => row.state === "running").length;
  return (
    <>
      <h1>{seen.value ? `${count(running, "task")} run, ${rows.length - running} wait` : "Tasks"}</h1>
      <Trouble of={seen.trouble} />
      {seen.value && rows.length === 0 ? <p>Nothing runs, and nothing waits. <code>drover run --gpus 1 -- COMMAND</code> starts something.</p> : (
        <List label="Tasks" heads={kHeads} rows={rows} keyOf={(row) => row.task.id} cells={(row) => [
          <span class={`state ${row.state}`}>{row.state}</span>, <Link to={`/tasks/${row.task.id}`}>{row.task.name} <code>{row.task.id}</code></Link>, row.task.user.name, row.task.queue,
          row.task.gpus, since(row.started_at ?? row.submitted_at), row.reason]} />
      )}
    </>
  );
}
