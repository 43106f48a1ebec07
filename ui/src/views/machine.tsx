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

export function Machine() {
  const seen = useShared(gpus), joined = useShared(topology);
  const all = seen.value?.gpus ?? [];
  const free = all.filter((gpu) => standing(gpu).tone === "free");
  return (
    <>
      <h1>{seen.value ? `${free.length} of ${count(all.length, "GPU")} free` : "GPUs"}</h1>
      <Trouble of={seen.trouble} />
      {seen.value && all.length === 0 ? <p>There are no GPUs on this machine.</p> : null}
      <ul class="cards">{all.map((gpu) => <Card key={gpu.uuid} gpu={gpu} />)}</ul>
      <Trouble of={joined.trouble} />
      {joined.value && all.length > 1 ? <Links topology={joined.value} free={new Set(free.map((gpu) => gpu.index))} /> : null}
    </>
  );
}
