import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

interface Shown<T> { label: string; heads: string[]; rows: T[]; keyOf: (row: T) => string; cells: (row: T) => ComponentChildren[]; height?: number }

const kBeyond = 8; // rows above and below those that are seen

/** A table of any length: only the rows that are seen are there. */
export function List<T>({ label, heads, rows, keyOf, cells, height = 36 }: Shown<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, size: 800 });
  useEffect(() => {
    const own = box.current!;
    const look = () => setSeen({ top: own.scrollTop, size: own.clientHeight });
    const watch = new ResizeObserver(look);
    watch.observe(own);
    own.addEventListener("scroll", look, { passive: true });
    return () => {
      watch.disconnect();
      own.removeEventListener("scroll", look);
    };
  }, []);
  const first = Math.max(0, Math.floor(seen.top / height) - kBeyond);
  const last = Math.min(rows.length, Math.ceil((seen.top + seen.size) / height) + kBeyond);
  const room = (count: number, key: string) => count > 0 ? <tr key={key} aria-hidden="true"><td colSpan={heads.length} ref={(cell) => { if (cell) cell.style.height = `${count * height}px`; }} /></tr> : null;
  return (
    <div class="list" ref={box} tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={rows.length + 1}>
        <thead><tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
        <tbody>
          {room(first, "above")}
          {rows.slice(first, last).map((row, at) => (
            <tr key={keyOf(row)} aria-rowindex={first + at + 2}>{cells(row).map((cell, column) => <td key={column}>{cell}</td>)}</tr>
          ))}
          {room(rows.length - last, "below")}
        </tbody>
      </table>
    </div>
  );
}
