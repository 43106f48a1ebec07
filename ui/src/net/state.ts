// What the views show, kept once for all of them: asked for when the first view wants it, and again when an event says that
// it may have changed.

import { useEffect, useState } from "preact/hooks";
import { get, Refusal } from "./api";
import { listen, type MachineEvent } from "./live";
import type { Gpus, TaskSummary, Topology } from "./types";

const kPause = 200; // ms between questions: many events come at once

export class Kept<T> {
  value: T | undefined;
  trouble: Refusal | undefined;
  private views = new Set<() => void>();
  private asking = false;
  private stale = true;
  private quiet: (() => void) | undefined;

  constructor(private readonly find: () => Promise<T>, private readonly concerns: (event: MachineEvent) => boolean) {}

  watch(view: () => void): () => void {
    this.views.add(view);
    this.quiet ??= listen((event) => this.concerns(event) && this.refresh());
    if (this.stale) this.refresh();
    return () => {
      this.views.delete(view);
      if (this.views.size > 0) return;
      this.quiet?.();
      this.quiet = undefined;
      this.stale = true;
    };
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
      this.views.forEach((view) => view());
      await new Promise((then) => setTimeout(then, kPause));
    }
    this.asking = false;
  }
}

export function useKept<T>(kept: Kept<T>): Kept<T> {
  const [, show] = useState(0);
  useEffect(() => kept.watch(() => show((times) => times + 1)), [kept]);
  return kept;
}

export const gpus = new Kept<Gpus>(() => get("/v1/gpus?usage=true"), () => true);
export const topology = new Kept<Topology>(() => get("/v1/topology"), (event) => event.kind.startsWith("gpu_"));
export const tasks = new Kept<TaskSummary[]>(async () => (await get<{ tasks: TaskSummary[] }>("/v1/tasks?summary=true&active=true")).tasks,
  (event) => event.task !== undefined);
