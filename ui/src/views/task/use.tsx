// What the task uses of its machine, over its life.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Refusal } from "../../net/api";
import { follow } from "../../net/stream";
import type { TaskStats, Use as Used } from "../../net/types";
import { Trouble } from "../../parts/trouble";
import { bytes, duration } from "../../parts/words";

type Says = (value: number) => string;
const percent: Says = (value) => `${Math.round(value)} %`;
const some: Says = (value) => value.toFixed(value < 10 ? 2 : 0);
const rate: Says = (value) => `${bytes(value)}/s`;

interface Chart { title: string; says: Says; lines: [column: string, label: string][]; to?: number }

const kCharts: Chart[] = [
  { title: "GPU", says: percent, lines: [["gpu_percent", "mean"], ["gpu_percent_max", "greatest"]], to: 100 },
  { title: "GPU memory", says: bytes, lines: [["gpu_memory_bytes", "mean"], ["gpu_memory_bytes_max", "greatest"]] },
  { title: "CPUs", says: some, lines: [["cpus", "mean"], ["cpus_max", "greatest"]] },
  { title: "Memory", says: bytes, lines: [["memory_bytes", "mean"], ["memory_bytes_max", "greatest"]] },
  { title: "Network", says: rate, lines: [["network_received_rate", "received"], ["network_sent_rate", "sent"]] },
  { title: "Disk", says: rate, lines: [["disk_read_rate", "read"], ["disk_written_rate", "written"]] },
];
const kColors = ["--good", "--busy"] as const;
const kSpans = [[1, "5 minutes"], [10, "An hour"], [60, "A day"]] as const; // seconds of a value, and how long those are kept
const kMost = 2000; // values
const kHeight = 170; // px

type Column = (number | null)[];
type Columns = { [name: string]: Column };

/** With what has come since. */
function grown(before: Columns | undefined, piece: TaskStats): Columns {
  const { task, resolution, use, ...columns } = piece;
  const last = before?.time?.at(-1) ?? 0;
  const from = columns.time.findIndex((time) => time > last);
  if (before && from < 0) return before;
  return Object.fromEntries(Object.entries(columns).map(([name, values]) =>
    [name, [...(before?.[name] ?? []), ...values.slice(before ? from : 0)].slice(-kMost)]));
}

function useStats(id: string, resolution: number) {
  const [columns, setColumns] = useState<Columns>();
  const [used, setUsed] = useState<Used>();
  const [refused, setRefused] = useState<Refusal>();
  useEffect(() => {
    setColumns(undefined);
    setRefused(undefined);
    return follow(`/v1/tasks/${id}/stats?resolution=${resolution}&follow=true`, {
      heard: ({ event, data }) => {
        if (event !== "stats") return;
        const piece = data as TaskStats;
        setColumns((before) => grown(before, piece));
        setUsed(piece.use);
      },
      refused: setRefused,
    });
  }, [id, resolution]);
  return { columns, used, refused };
}

const color = (name: string) => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const worked = getComputedStyle(probe).color;
  probe.remove();
  return worked;
};

function Plot({ chart, columns }: { chart: Chart; columns: Columns }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const lines = chart.lines.filter(([name]) => columns[name]?.some((value) => value !== null));
  const shown = lines.map(([name]) => name).join();
  const data = [columns.time, ...lines.map(([name]) => columns[name])] as uPlot.AlignedData;
  useEffect(() => {
    if (lines.length === 0) return;
    const frame = box.current!;
    const [text, edge] = [color("--quiet"), color("--edge")];
    const axis = { stroke: text, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 } };
    plot.current = new uPlot({
      width: frame.clientWidth,
      height: kHeight,
      cursor: { sync: { key: "use" }, drag: { x: false, y: false } },
      scales: { y: { range: (_, __, most) => [0, Math.max(chart.to ?? 0, most * 1.05, Number.EPSILON)] } },
      axes: [axis, { ...axis, size: 76, values: (_, marks) => marks.map(chart.says) }],
      series: [{}, ...lines.map(([, label], index) => ({
        label, stroke: color(kColors[index]!), width: 1.5, value: (_: uPlot, value: number | null) => (value === null ? "–" : chart.says(value)) }))],
    }, data, frame);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: frame.clientWidth, height: kHeight }));
    watch.observe(frame);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shown]);
  useEffect(() => plot.current?.setData(data), [columns]);
  if (lines.length === 0) return null;
  const now = lines.map(([name, label]) => {
    const value = columns[name]!.at(-1);
    return value == null ? `${label} not known` : `${label} ${chart.says(value)}`;
  });
  return (
    <figure class="plot">
      <figcaption>{chart.title}: {now.join(", ")}</figcaption>
      <div ref={box} aria-hidden="true" />
    </figure>
  );
}

function Sums({ used }: { used: Used }) {
  const facts: [string, number | undefined, Says][] = [
    ["GPU use, mean", used.gpu_percent_mean, percent], ["GPU memory, greatest", used.gpu_memory_bytes_max, bytes],
    ["CPU time", used.cpu_seconds, (value) => duration(value * 1000)], ["Memory, greatest", used.memory_bytes_max, bytes],
    ["Received", used.network_received_bytes, bytes], ["Sent", used.network_sent_bytes, bytes],
    ["Read from disk", used.disk_read_bytes, bytes], ["Written to disk", used.disk_written_bytes, bytes],
  ];
  return (
    <>
      {used.advice ? <p>{used.advice}</p> : null}
      <dl class="facts">
        {facts.map(([title, value, says]) => (value === undefined ? null : <><dt key={title}>{title}</dt><dd>{says(value)}</dd></>))}
      </dl>
    </>
  );
}

export function Use({ id, over }: { id: string; over: boolean }) {
  const [resolution, setResolution] = useState<number>(kSpans[0][0]);
  const { columns, used, refused } = useStats(id, resolution);
  const known = columns !== undefined && columns.time!.length > 0;
  return (
    <section aria-label="Use">
      <p class="tools">
        <label>Of the last
          <select value={resolution} onChange={(event) => setResolution(Number(event.currentTarget.value))}>
            {kSpans.map(([seconds, title]) => <option key={seconds} value={seconds}>{title}</option>)}
          </select>
        </label>
      </p>
      <Trouble of={refused} />
      {known ? <div class="plots">{kCharts.map((chart) => <Plot key={`${chart.title} ${resolution}`} chart={chart} columns={columns} />)}</div>
        : <p role="status">{over ? "Nothing is known of that time." : "Nothing is known yet: it is looked at each second while it runs."}</p>}
      {used ? <><h2>Over its life</h2><Sums used={used} /></> : null}
    </section>
  );
}
