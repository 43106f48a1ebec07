import { Bar } from "../parts/bar";
import { Trouble } from "../parts/trouble";
import { bytes, count } from "../parts/words";
import { gpus, topology, useShared } from "../net/state";
import type { Gpu } from "../net/types";
import { Links } from "./links";

/** "free", or what keeps others from having it. */
function standing(gpu: Gpu): { word: string; tone: string } {
  if (gpu.cordoned) return { word: `out of use: ${gpu.cordoned}`, tone: "off" };
  if (!gpu.healthy || gpu.unfit) return { word: gpu.unfit || "unhealthy", tone: "bad" };
  return gpu.holders.length === 0 ? { word: "free", tone: "free" } : { word: "in use", tone: "used" };
}

function Card({ gpu }: { gpu: Gpu }) {
  const { word, tone } = standing(gpu);
  const use = gpu.usage;
  return (
    <li class={`card ${tone}`}>
      <h2>GPU {gpu.index} <span class="model">{gpu.model}</span></h2>
      <p class="standing">{word}</p>
      <Bar label="Memory" part={use?.memory_used_bytes} whole={gpu.memory_bytes} says={(part) => `${bytes(part)} of ${bytes(gpu.memory_bytes)}`} />
      <Bar label="Use" part={use?.gpu_percent} whole={100} says={(part) => `${part}%`} />
      <p class="figures">
        {use?.temperature == null ? null : <span>{use.temperature} °C</span>}
        {use?.power_mw == null ? null : <span>{Math.round(use.power_mw / 1000)} W</span>}
        {gpu.numa_node == null ? null : <span>NUMA {gpu.numa_node}</span>}
        <span>{gpu.pci}</span>
      </p>
      {gpu.holders.length === 0 ? null : (
        <ul class="holders" aria-label={`Who has GPU ${gpu.index}`}>
          {gpu.holders.map((holder) => (
            <li key={holder.task}>
              {holder.user} <code>{holder.task}</code> {holder.milli !== undefined && holder.milli < 1000 ? `${bytes(holder.memory ?? 0)}, ${holder.tier}` : "all of it"}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Cards({ gpus }: { gpus: Gpu[] }) {
  return <ul class="cards">{gpus.map((gpu) => <Card key={gpu.uuid} gpu={gpu} />)}</ul>;
}

const isFree = (gpu: Gpu) => standing(gpu).tone === "free";
const freeOf = (gpus: Gpu[]) => `${gpus.filter(isFree).length} of ${count(gpus.length, "GPU")} free`;

export function Machine() {
  const seen = useShared(gpus), joined = useShared(topology);
  const all = seen.value?.gpus ?? [];
  const nodes = [...new Set(all.map((gpu) => gpu.node))].sort();
  const on = (node: string) => all.filter((gpu) => gpu.node === node);
  return (
    <>
      <h1>{seen.value ? freeOf(all) : "GPUs"}</h1>
      <Trouble of={seen.trouble} />
      {seen.value && all.length === 0 ? <p>There are no GPUs on this machine.</p> : null}
      {nodes.length < 2 ? <Cards gpus={all} /> : nodes.map((node) => (
        <section key={node} aria-label={node}>
          <h2>{node}: {freeOf(on(node))}</h2>
          <Cards gpus={on(node)} />
        </section>
      ))}
      <Trouble of={joined.trouble} />
      {joined.value && all.length > 1 && nodes.length === 1 ? <Links topology={joined.value} free={new Set(all.filter(isFree).map((gpu) => gpu.index))} /> : null}
    </>
  );
}
