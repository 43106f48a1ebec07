import type { Refusal } from "../net/api";

export function Trouble({ of }: { of: Refusal | undefined }) {
  return of ? <p class="trouble" role="alert">{of.message}. {of.hint}</p> : null;
}
