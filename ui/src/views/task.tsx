import { useEffect, useRef, useState } from "preact/hooks";
import { ask, get, type Refusal } from "../net/api";
import { follow } from "../net/stream";
import type { Explanation, Record } from "../net/types";
import { Trouble } from "../parts/trouble";
import { bytes, since } from "../parts/words";

const kEnded = new Set(["finished", "failed", "killed", "lost"]);
const kMostLines = 5000;

interface Line { at: number; stream: string; text: string }

/** Escape sequences are for terminals: here they would be noise. */
function plain(text: string): string {
  return text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])/g, "").replace(/[\0-\x08\x0b-\x1f\x7f]/g, "");
}

function decoded(data: { encoding: string; data: string }): string {
  if (data.encoding === "utf-8") return data.data;
  return new TextDecoder().decode(Uint8Array.from(atob(data.data), (letter) => letter.charCodeAt(0)));
}

/** The task's record and its output, as both change. */
function useTask(id: string) {
  const [record, setRecord] = useState<Record>();
  const [lines, setLines] = useState<Line[]>([]);
  useEffect(() => {
    setLines([]);
    let count = 0, waiting: Line[] = [], rest: { [stream: string]: string } = {}, timer: number | undefined;
    const show = () => {
      timer = undefined;
      const more = waiting;
      waiting = [];
      setLines((before) => [...before, ...more].slice(-kMostLines));
    };
    const leave = follow(`/v1/tasks/${id}/logs?follow=true&tail=${kMostLines}`, {
      heard: ({ event, data }) => {
        if (event !== "log") return setRecord(data as Record);
        const piece = data as { stream: string; encoding: string; data: string };
        const parts = ((rest[piece.stream] ?? "") + decoded(piece)).split("\n");
        rest[piece.stream] = parts.pop()!;
        for (const text of parts) waiting.push({ at: ++count, stream: piece.stream, text: plain(text) });
        timer ??= setTimeout(show, 50);
      },
    });
    return () => {
      leave();
      clearTimeout(timer);
    };
  }, [id]);
  return { record, lines };
}

function Output({ lines }: { lines: Line[] }) {
  const box = useRef<HTMLPreElement>(null);
  const [wanted, setWanted] = useState("");
  const [stays, setStays] = useState(true);
  const shown = wanted ? lines.filter((line) => line.text.toLowerCase().includes(wanted.toLowerCase())) : lines;
  useEffect(() => {
    if (stays && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown, stays]);
  return (
    <section aria-labelledby="output">
      <h2 id="output">Output</h2>
      <div class="tools">
        <input type="search" aria-label="Only lines with" placeholder="Only lines with" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        <label><input type="checkbox" checked={stays} onChange={(event) => setStays(event.currentTarget.checked)} /> Follow</label>
      </div>
      <pre class="output" ref={box} tabIndex={0} aria-label="What the task has written">
        {shown.map((line) => <span key={line.at} class={line.stream}>{line.text}{"\n"}</span>)}
      </pre>
    </section>
  );
}

function Why({ id, state }: { id: string; state: string }) {
  const [told, setTold] = useState<Explanation>();
  useEffect(() => {
    let current = true;
    get<Explanation>(`/v1/tasks/${id}/explain`).then((answer) => current && setTold(answer), () => undefined);
    return () => {
      current = false;
    };
  }, [id, state]);
  if (!told || (told.reasons.length === 0 && told.remedies.length === 0)) return null;
  return (
    <section aria-labelledby="why">
      <h2 id="why">{told.place ? `Place ${told.place} in ${told.queue}` : "Why"}</h2>
      <ul>{told.reasons.map((reason) => <li key={reason}>{reason}</li>)}</ul>
      {told.remedies.length === 0 ? null : <p>What helps: {told.remedies.join("; ")}</p>}
    </section>
  );
}

export function Task({ id }: { id: string }) {
  const { record, lines } = useTask(id);
  const [trouble, setTrouble] = useState<Refusal>();
  if (!record) return <p>There is no such task, or not yet.</p>;
  const { task } = record;
  const stop = (force: boolean) => ask("POST", `/v1/tasks/${task.id}/stop`, { force }).then(() => setTrouble(undefined), setTrouble);
  return (
    <>
      <h1>{task.name} <code>{task.id}</code></h1>
      <p><span class={`state ${record.state}`}>{record.state}</span> {since(record.started_at ?? record.submitted_at)} {record.reason}</p>
      <Trouble of={trouble} />
      {kEnded.has(record.state) ? null : <p class="tools"><button type="button" onClick={() => stop(false)}>Stop</button></p>}
      {record.grants.length === 0 ? null : (
        <ul>{record.grants.map((grant) => <li key={grant.gpu}><code>{grant.gpu}</code> {grant.milli < 1000 ? `${bytes(grant.memory)}, ${grant.tier ?? "counted"}` : "all of it"}</li>)}</ul>
      )}
      <Why id={task.id} state={record.state} />
      <Output lines={lines} />
    </>
  );
}
