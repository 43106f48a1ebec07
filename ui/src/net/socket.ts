// Live answers: each comes by a WebSocket of its own, of which a browser keeps many; of other connections to one server it
// keeps six for all of its pages together.

import { session } from "./session";

export interface Order { method?: string; path: string; body?: unknown; protocol?: string; last?: string }

interface Ears {
  /** Once, before all else. `body` is the answer where there is nothing live behind it. */
  answered: (status: number, body: string) => void;
  heard: (piece: Uint8Array) => void;
  /** Once, whatever happens. */
  ended: () => void;
}

export interface Socket { write(piece: Uint8Array): void; close(): void }

export function open({ method, path, body, protocol, last }: Order, ears: Ears): Socket {
  const address = new URL("/v1/socket", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const token = session();
  socket.onopen = () => socket.send(JSON.stringify({
    path, ...(method ? { method } : {}), ...(body === undefined ? {} : { body }), ...(protocol ? { protocol } : {}),
    ...(last ? { last_event_id: last } : {}), ...(token ? { authorization: `Bearer ${token}` } : {}),
  }));
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return ears.heard(new Uint8Array(data as ArrayBuffer));
    const { status, body } = JSON.parse(data);
    ears.answered(status, body ?? "");
  };
  socket.onclose = () => ears.ended();
  return {
    write: (piece) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(piece as Uint8Array<ArrayBuffer>);
    },
    close: () => {
      socket.onclose = null;
      socket.onmessage = null;
      socket.close();
    },
  };
}
