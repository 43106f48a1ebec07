// What goes both ways once a connection has left HTTP: a channel, the length of what follows in four bytes, and that.

export interface Frame { channel: number; payload: Uint8Array }

const kHead = 5;

export function frame(channel: number, payload: Uint8Array): Uint8Array {
  const made = new Uint8Array(kHead + payload.length);
  made[0] = channel;
  new DataView(made.buffer).setUint32(1, payload.length);
  made.set(payload, kHead);
  return made;
}

/** Finds the frames in what comes piece by piece. */
export class Frames {
  private rest = new Uint8Array(0);

  take(piece: Uint8Array): Frame[] {
    const all = new Uint8Array(this.rest.length + piece.length);
    all.set(this.rest);
    all.set(piece, this.rest.length);
    const found: Frame[] = [];
    let at = 0;
    while (all.length - at >= kHead) {
      const length = new DataView(all.buffer, at + 1).getUint32(0);
      if (all.length - at < kHead + length) break;
      found.push({ channel: all[at]!, payload: all.subarray(at + kHead, at + kHead + length) });
      at += kHead + length;
    }
    this.rest = all.slice(at);
    return found;
  }
}
