// What the task has written, line by line, as it comes.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Refusal } from "../../net/api";
import { follow } from "../../net/stream";
import type { Record } from "../../net/types";

const kMostLines = 5000;

export interface Line { at: number; stream: string; text: string }

/** Escape sequences are for terminals: here they would be noise. */
function plain(text: string): string {
  return text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])/g, "").replace(/[\0-\x08\x0b-\x1f\x7f]/g, "");
}

function decoded(data: { encoding: string; data: string }): string {
  if (data.encoding === "utf-8") return data.data;
  return new TextDecoder().decode(Uint8Array.from(atob(data.data), (letter) => letter.charCodeAt(0)));
}

/** The task's record and its output, as both change. */
export function useTask(id: string) {
  const [record, setRecord] = useState<Record>();
  const [lines, setLines] = useState<Line[]>([]);
  const [refused, setRefused] = useState<Refusal>();
  useEffect(() => {
    setLines([]);
    setRefused(undefined);
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
      refused: setRefused,
    });
    return () => {
      leave();
      clearTimeout(timer);
    };
  }, [id]);
  return { record, lines, refused };
}

export function Output({ lines }: { lines: Line[] }) {
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
      <pre class="output" ref={box} role="log" tabIndex={0} aria-label="What the task has written">
        {shown.map((line) => <span key={line.at} class={line.stream}>{line.text}{"\n"}</span>)}
      </pre>
    </section>
  );
}
