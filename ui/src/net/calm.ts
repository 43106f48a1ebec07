import { Kept } from "./state";

const kPause = 1000; // ms
const kTimes = 4; // so many times as long as an answer took, the daemon has rest of it

/** Large answers about what changes often: asked for again a while after the last one, the larger the later. */
export class Calm<T> extends Kept<T> {
  private timer: number | undefined;
  private began = 0;
  private next = 0;

  override refresh(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.began = Date.now();
      super.refresh();
    }, Math.max(0, this.next - Date.now()));
  }

  protected override show(): void {
    const now = Date.now();
    this.next = now + Math.max(kPause, kTimes * (now - this.began));
    super.show();
  }
}
