// A shell in the task's container.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen } from "@xterm/xterm";
import { useEffect, useRef, useState } from "preact/hooks";
import { refusal } from "../../net/api";
import { frame, Frames } from "../../net/frames";
import { open } from "../../net/socket";
import { keepStylesStrict } from "../../parts/strict_styles";

const kInput = 0, kResize = 1; // to the daemon
const kOutput = 1, kErrors = 2, kEnd = 3; // from it
const kShell = ["sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"];

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Colours of the page, as the browser has worked them out. */
function theme() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const worked = (name: string) => {
    probe.style.color = color(name);
    return getComputedStyle(probe).color;
  };
  const found = { background: worked("--raised"), foreground: worked("--text"), cursor: worked("--busy"), selectionBackground: worked("--edge") };
  probe.remove();
  return found;
}

/** What the command came to, in words. */
function ending(text: string): string {
  const { exit_status: status, error } = JSON.parse(text);
  if (error) return error.message;
  return `The shell has ended, with status ${status}`;
}

export function Terminal({ id }: { id: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [said, setSaid] = useState("");
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    setSaid("");
    keepStylesStrict();
    const screen = new Screen({ fontFamily: "ui-monospace, monospace", fontSize: 14, theme: theme(), screenReaderMode: true });
    const fit = new FitAddon();
    screen.loadAddon(fit);
    screen.open(box.current!);
    fit.fit();
    const frames = new Frames(), encoder = new TextEncoder(), decoder = new TextDecoder();
    let over = false;
    const end = (words: string) => {
      if (!over) setSaid(words);
      over = true;
    };
    const socket = open({ method: "POST", path: `/v1/tasks/${id}/exec`, protocol: "drover-exec",
      body: { command: kShell, tty: true, rows: screen.rows, columns: screen.cols, env: { TERM: "xterm-256color" } } }, {
      answered: (status, body) => {
        if (status >= 400) end(refusal(status, body).message);
        else screen.focus();
      },
      heard: (piece) => {
        for (const { channel, payload } of frames.take(piece)) {
          if (channel === kOutput || channel === kErrors) screen.write(payload);
          if (channel === kEnd) end(ending(decoder.decode(payload)));
        }
      },
      ended: () => end("The connection was lost, and the shell with it"),
    });
    screen.onData((text) => socket.write(frame(kInput, encoder.encode(text))));
    screen.onResize(({ rows, cols }) => socket.write(frame(kResize, encoder.encode(JSON.stringify({ rows, columns: cols })))));
    const watch = new ResizeObserver(() => fit.fit());
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      socket.close();
      screen.dispose();
    };
  }, [id, turn]);
  return (
    <section aria-label="Terminal">
      <div class="shell" ref={box} />
      {said ? <p role="status">{said}. <button type="button" onClick={() => setTurn(turn + 1)}>Begin another</button></p> : <p class="hint">A shell in the task's container. It ends when you leave this page.</p>}
    </section>
  );
}
