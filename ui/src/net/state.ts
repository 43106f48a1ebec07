// What the views show, kept once for all of them, as long as one of them wants it.

import { useEffect, useState } from "preact/hooks";
import { get, type Refusal } from "./api";
import { listen, type MachineEvent } from "./live";
import { follow } from "./stream";
import type { Gpus, TaskSummary, Topology } from "./types";

const kWaiting = new Set(["queued", "blocked"]);
const kPause = 200; // ms between questions: many events come at once

abstract class Shared {
  trouble: Refusal | undefined;
  private readonly views = new Set<() => void>();
  private leave: (() => void) | undefined;

  protected abstract begin(): () => void;
  protected show(): void {
    this.views.forEach((view) => view());
  }

  watch(view: () => void): () => void {
    this.views.add(view);
    this.leave ??= this.begin();
    return () => {
      this.views.delete(view);
      if (this.views.size > 0) return;
      this.leave?.();
      this.leave = undefined;
    };
  }
}

export function useShared<T extends Shared>(shared: T): T {
  const [, show] = useState(0);
  useEffect(() => shared.watch(() => show((times) => times + 1)), [shared]);
  return shared;
}

/** Asked for at first, and again when an event says that it may have changed. */
export class Kept<T> extends Shared {
  value: T | undefined;
  private asking = false;
  private stale = false;

  constructor(private readonly find: () => Promise<T>, private readonly concerns: (event: MachineEvent) => boolean) {
    super();
  }

  protected begin(): () => void {
    this.refresh();
    return listen((event) => this.concerns(event) && this.refresh());
  }

  refresh(): void {
    this.stale = true;
    if (this.asking) return;
    this.asking = true;
    void this.ask();
  }

  private async ask(): Promise<void> {
    while (this.stale) {
      this.stale = false;
      try {
        this.value = await this.find();
        this.trouble = undefined;
      } catch (error) {
        this.trouble = error as Refusal;
      }
      this.show();
      await new Promise((then) => setTimeout(then, kPause));
    }
    this.asking = false;
  }
}

/** The daemon sends it whenever it is new. */
class Followed<T> extends Shared {
  value: T | undefined;

  constructor(private readonly path: string) {
    super();
  }

  protected begin(): () => void {
    return follow(this.path, {
      heard: ({ data }) => {
        this.value = data as T;
        this.trouble = undefined;
        this.show();
      },
      refused: (refusal) => {
        this.trouble = refusal;
        this.show();
      },
    });
  }
}

/** All tasks that have not ended: read once, and then those that an event names. */
class Tasks extends Shared {
  value: TaskSummary[] | undefined;
  private readonly known = new Map<string, TaskSummary>();
  private readonly named = new Set<string>();
  private asking = false;

  protected begin(): () => void {
    this.value = undefined;
    this.known.clear();
    void this.ask("");
    return listen(({ task }) => {
      if (!task) return;
      this.named.add(task);
      if (!this.asking) void this.ask();
    });
  }

  private async ask(query?: string): Promise<void> {
    this.asking = true;
    for (let ids = query ?? this.next(); ids !== undefined; ids = this.next()) {
      try {
        const { tasks } = await get<{ tasks: TaskSummary[] }>(`/v1/tasks?summary=true&active=true${ids}`);
        for (const id of this.questioned) this.known.delete(id);
        for (const task of tasks) this.known.set(task.task.id, task);
        this.value = [...this.known.values()];
        this.trouble = undefined;
      } catch (error) {
        this.trouble = error as Refusal;
      }
      this.show();
      await new Promise((then) => setTimeout(then, kPause));
    }
    this.asking = false;
  }

  private questioned: string[] = [];
  private next(): string | undefined {
    const kMost = 100; // they stand in one address
    if (this.named.size === 0) return undefined;
    this.questioned = [...this.named].slice(0, kMost);
    for (const id of this.questioned) this.named.delete(id);
    // Why others wait may be new too.
    for (const { task, state } of this.known.values()) {
      if (this.questioned.length >= kMost) break;
      if (kWaiting.has(state) && !this.questioned.includes(task.id)) this.questioned.push(task.id);
    }
    return this.questioned.map((id) => `&id=${encodeURIComponent(id)}`).join("");
  }
}

export const gpus = new Followed<Gpus>("/v1/gpus?usage=true&follow=true");
export const topology = new Kept<Topology>(() => get("/v1/topology"), (event) => event.kind.startsWith("gpu_"));
export const tasks = new Tasks();
