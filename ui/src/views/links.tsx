// How the GPUs are joined: the same as a picture and as a table, as `drover topo` has it.

import type { Topology } from "../net/types";

interface Shown { topology: Topology; free: Set<number> }

/** From the nearest to the farthest. */
function nearness(label: string): number {
  if (label.startsWith("NV")) return 0;
  return ["PIX", "PXB", "PHB", "NODE", "SYS"].indexOf(label) + 1;
}

const kSize = 360, kMiddle = kSize / 2, kRadius = kMiddle - 30;

function Picture({ topology, free }: Shown) {
  const place = (at: number): [number, number] => {
    const angle = (2 * Math.PI * at) / topology.gpus.length - Math.PI / 2;
    return [kMiddle + kRadius * Math.cos(angle), kMiddle + kRadius * Math.sin(angle)];
  };
  const pairs = topology.gpus.flatMap((_, a) => topology.gpus.slice(a + 1).map((_, b) => [a, a + 1 + b] as const));
  return (
    <svg class="joined" viewBox={`0 0 ${kSize} ${kSize}`} role="img" aria-label="GPUs and the links between them; the table has the same">
      {pairs.map(([a, b]) => {
        const label = topology.links[a]?.[b]?.label ?? "";
        const [x1, y1] = place(a), [x2, y2] = place(b);
        const open = free.has(topology.gpus[a]!.index) && free.has(topology.gpus[b]!.index);
        return <line key={`${a}-${b}`} x1={x1} y1={y1} x2={x2} y2={y2} class={`near${nearness(label)} ${open ? "open" : ""}`}><title>{`${a} – ${b}: ${label}`}</title></line>;
      })}
      {topology.gpus.map((gpu, at) => {
        const [x, y] = place(at);
        return <g key={gpu.uuid} class={free.has(gpu.index) ? "open" : ""}><circle cx={x} cy={y} r={18} /><text x={x} y={y + 5}>{gpu.index}</text></g>;
      })}
    </svg>
  );
}

export function Links({ topology, free }: Shown) {
  return (
    <section aria-labelledby="links">
      <h2 id="links">How they are joined</h2>
      <div class="links">
        <Picture topology={topology} free={free} />
        <div class="wide" tabIndex={0} role="region" aria-label="Links of each pair">
          <table class="matrix">
            <thead><tr><th scope="col">GPU</th>{topology.gpus.map((gpu) => <th key={gpu.uuid} scope="col">{gpu.index}</th>)}</tr></thead>
            <tbody>
              {topology.gpus.map((gpu, a) => (
                <tr key={gpu.uuid}>
                  <th scope="row">{gpu.index}</th>
                  {topology.gpus.map((other, b) => {
                    const label = topology.links[a]?.[b]?.label ?? "";
                    const open = a !== b && free.has(gpu.index) && free.has(other.index);
                    return <td key={other.uuid} class={a === b ? "self" : `near${nearness(label)} ${open ? "open" : ""}`}>{label}</td>;
                  })}
                </tr>
              ))}
            </tbody>
          </table>
          <p>Pairs in colour are free. NV: NVLinks; PIX, PXB, PHB: over PCIe, the nearer first; NODE, SYS: over the processors.</p>
        </div>
      </div>
    </section>
  );
}
