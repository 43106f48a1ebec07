import { useState } from "preact/hooks";
import { ask } from "../../net/api";
import { caller, queues, quotas, refreshSharing } from "../../net/sharing";
import { useShared } from "../../net/state";
import type { Amounts, Limits, Queue, Quota, Waiting } from "../../net/types";
import { useDeeds } from "../../parts/deeds";
import { TaskLink } from "../../parts/links";
import { List } from "../../parts/list";
import { Named } from "../../parts/named";
import { Trouble } from "../../parts/trouble";
import { bytes, count, since } from "../../parts/words";
import { Editor } from "./editor";
import { queueForm, quotaForm, subjectOf, type Form } from "./forms";

const kWaitingHeads = ["Place", "Queue", "Task", "User", "Wants", "Priority", "For", "Why"];

function amounts({ gpus, cpus, memory }: Amounts | Limits): string {
  const parts = [gpus ? count(Number(gpus), "GPU") : "", cpus ? count(Number(cpus), "CPU") : "", memory ? bytes(Number(memory)) : ""].filter(Boolean);
  return parts.join(", ") || "–";
}

const rounded = (amount: number) => Math.round(amount * 1000) / 1000;

/** What of its guarantee lies idle, which others may have until it wants it, and what it has beyond it, until others want theirs. */
function lent({ guarantee, used }: Queue): string {
  const sure = Number(guarantee.gpus ?? 0), idle = rounded(sure - used.gpus);
  if (idle > 0) return `${count(idle, "GPU")} to others while idle`;
  return sure > 0 && idle < 0 ? `${count(-idle, "GPU")} beyond its own` : "–";
}

interface Tools { root: boolean; edit: (form: Form) => void; remove: (what: string, target: string) => void }

/** Of root's alone. */
function tools({ root, edit, remove }: Tools, name: string, form: Form, target: string) {
  return root ? [<span class="tools">
    <button type="button" class="other small" aria-label={`Edit … ${name}`} onClick={() => edit(form)}>Edit …</button>
    <button type="button" class="other small" aria-label={`Remove … ${name}`} onClick={() => remove(name, target)}>Remove …</button>
  </span>] : [];
}

function QueueTable({ of, own }: { of: Queue[]; own: Tools }) {
  const heads = ["Queue", "Held", "Guarantee", "Lent", "Limit", "Weight", "Who", "Waiting", ...(own.root ? ["Change"] : [])];
  return (
    <List label="Queues" heads={heads} rows={of} keyOf={(row) => row.queue} cells={(row) => [
      <Named>{row.queue}</Named>, amounts(row.used), amounts(row.guarantee), lent(row), amounts(row.limit), row.weight, <Named>{row.users.join(", ") || "all"}</Named>, row.waiting.length,
      ...tools(own, row.queue, queueForm(row), `/v1/queues/${row.queue}`)]} />
  );
}

function QuotaTable({ of, own }: { of: Quota[]; own: Tools }) {
  const heads = ["Whose", "Held", "Limit", "Highest priority", ...(own.root ? ["Change"] : [])];
  return (
    <List label="All quotas" heads={heads} rows={of} keyOf={subjectOf} cells={(row) => [
      <Named>{subjectOf(row)}</Named>, amounts(row.used), amounts(row.limit), row.user ? row.max_priority ?? 0 : "–",
      ...tools(own, subjectOf(row), quotaForm(row), `/v1/quotas/${subjectOf(row).split("/").map(encodeURIComponent).join("/")}`)]} />
  );
}

function WaitingTable({ of }: { of: Queue[] }) {
  const rows = of.flatMap(({ queue, waiting }) => waiting.map((each) => ({ ...each, queue }))).sort((a, b) => a.place - b.place);
  if (rows.length === 0) return <p>Nothing waits.</p>;
  const task = ({ id, members }: Waiting) => id === null ? "of somebody else" : <><TaskLink id={id} />{members > 1 ? ` and ${members - 1} more` : ""}</>;
  return (
    <List label="All that waits" heads={kWaitingHeads} rows={rows} keyOf={(row) => `${row.place} ${row.id ?? ""}`} cells={(row) => [
      row.place, <Named>{row.queue}</Named>, task(row), <Named>{row.user}</Named>, amounts(row.wanted), row.priority ?? "", since(row.submitted_at), <Named>{row.reasons.join("; ")}</Named>]} />
  );
}

export function Queues() {
  const all = useShared(queues), sharing = useShared(quotas), who = useShared(caller), deeds = useDeeds();
  const [form, setForm] = useState<Form>();
  const root = who.value?.root ?? false;
  const waiting = all.value?.reduce((sum, each) => sum + each.waiting.length, 0) ?? 0;
  const remove = (what: string, target: string) => deeds.ask({
    title: "Remove it?",
    verb: "Remove it",
    says: <p><Named>{what}</Named> and what it says will be gone.</p>,
    deed: async () => {
      await ask("DELETE", target);
      refreshSharing();
      return `${what} is gone.`;
    },
  });
  const own: Tools = { root, edit: setForm, remove };
  return (
    <>
      <h1>{all.value ? `${count(all.value.length, "queue")}, ${waiting} waiting` : "Queues"}</h1>
      {deeds.shown}
      {form ? <Editor form={form} done={deeds.say} closed={() => setForm(undefined)} /> : null}
      <Trouble of={all.trouble} />
      {all.value ? <QueueTable of={all.value} own={own} /> : null}
      {root ? <p class="tools below"><button type="button" class="other" onClick={() => setForm(queueForm())}>New queue …</button></p> : <p>Only root changes queues and quotas.</p>}
      {all.value ? <section aria-labelledby="waiting"><h2 id="waiting">What waits</h2><WaitingTable of={all.value} /></section> : null}
      <section aria-labelledby="quotas">
        <h2 id="quotas">Quotas</h2>
        <Trouble of={sharing.trouble} />
        {sharing.value && sharing.value.length > 0 ? <QuotaTable of={sharing.value} own={own} /> : null}
        {sharing.value?.length === 0 ? <p>{root ? "There are none" : "You have none"}: <code>sudo drover quota set user:alice --gpus 2</code> sets one.</p> : null}
        {root ? <p class="tools below"><button type="button" class="other" onClick={() => setForm(quotaForm())}>New quota …</button></p> : null}
      </section>
    </>
  );
}
