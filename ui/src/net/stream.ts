// Events that the daemon sends, as they come.

import { refusal, stranger, type Refusal } from "./api";
import { open } from "./socket";

export interface Told { event: string; id: string; data: unknown }

const kFirstPause = 250, kLongestPause = 5000; // ms
const kSilence = 30_000; // ms: the daemon says something every ten seconds

interface Ears {
  heard: (told: Told) => void;
  door?: (open: boolean) => void;
  refused?: (refusal: Refusal) => void;
}

function told(piece: string, id: string): Told {
  const one: Told = { event: "", id, data: undefined };
  let text = "";
  for (const line of piece.split("\n")) {
    const colon = line.indexOf(": ");
    const [name, value] = [line.slice(0, colon), line.slice(colon + 2)];
    if (name === "event") one.event = value;
    if (name === "id") one.id = value;
    if (name === "data") text += (text ? "\n" : "") + value;
  }
  if (text) one.data = JSON.parse(text);
  return one;
}

/** Whoever loses it connects again, and goes on after the last event that he heard. Until the function that is returned is
 * called, an `end` is told, or the daemon says that it will not. */
export function follow(path: string, ears: Ears): () => void {
  let id = "", pause = kFirstPause, over = false;
  let leave: () => void = () => undefined;
  const connect = () => {
    const decoder = new TextDecoder();
    let rest = "", alarm: number | undefined, silent: number | undefined;
    const ended = () => {
      clearTimeout(silent);
      if (over) return;
      ears.door?.(false);
      alarm = setTimeout(connect, pause);
      pause = Math.min(2 * pause, kLongestPause);
    };
    const socket = open({ path, last: id }, {
      answered: (status, body) => {
        over = status >= 400 && status < 500 && status !== 429;
        if (status === 401) stranger();
        if (over) ears.refused?.(refusal(status, body));
        if (status < 400) ears.door?.(true);
      },
      heard: (piece) => {
        pause = kFirstPause;
        clearTimeout(silent);
        silent = setTimeout(lose, kSilence);
        const pieces = (rest + decoder.decode(piece, { stream: true })).split("\n\n");
        rest = pieces.pop()!;
        for (const each of pieces) {
          const one = told(each, id);
          id = one.id;
          if (one.event === "end") over = true;
          if (one.data !== undefined) ears.heard(one);
        }
      },
      ended,
    });
    const lose = () => {
      socket.close();
      ended();
    };
    leave = () => {
      over = true;
      clearTimeout(alarm);
      clearTimeout(silent);
      socket.close();
    };
  };
  connect();
  return () => leave();
}
