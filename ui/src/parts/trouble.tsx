import { Refusal } from "../net/api";

/** Why something was refused or failed, in the words of who says so. */
export function Trouble({ of }: { of: Error | undefined }) {
  return of ? <p class="trouble" role="alert">{of.message}. {of instanceof Refusal ? of.hint : ""}</p> : null;
}
