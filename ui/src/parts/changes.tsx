// What is different between two definitions.

import { Said } from "./named";

export interface Difference { field: string; before: string; after: string }

type Value = unknown;

const isObject = (value: Value): value is Record<string, Value> => typeof value === "object" && value !== null && !Array.isArray(value);
const isSecret = (field: string) => /^(env|environmentVariables|secrets)\b/.test(field);

function words(value: Value): string {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return "none";
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ");
  return typeof value === "string" ? value || "''" : JSON.stringify(value);
}

export function differences(before: Value, after: Value, apart: Set<string> = new Set(), field = ""): Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (isObject(before ?? {}) && isObject(after ?? {})) {
    const [was, is] = [before ?? {}, after ?? {}] as [{ [name: string]: Value }, { [name: string]: Value }];
    const names = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
    return names.filter((name) => field || !apart.has(name)).flatMap((name) => differences(was[name], is[name], apart, field ? `${field}.${name}` : name));
  }
  if (isSecret(field)) return [{ field, before: "not shown", after: "changed" }];
  return [{ field, before: words(before), after: words(after) }];
}

export function Changes({ of, heads }: { of: Difference[]; heads: [string, string] }) {
  if (of.length === 0) return <p>Nothing would be different.</p>;
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="What would be different">
      <table class="facts">
        <thead><tr><th scope="col">Field</th>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
        <tbody>{of.map(({ field, before, after }) => <tr key={field}><th scope="row"><Said>{field}</Said></th><td><Said>{before}</Said></td><td><Said>{after}</Said></td></tr>)}</tbody>
      </table>
    </div>
  );
}
