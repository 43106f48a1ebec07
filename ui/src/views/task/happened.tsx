import { useEffect, useState } from "preact/hooks";
import type { Refusal } from "../../net/api";
import type { MachineEvent } from "../../net/live";
import { follow } from "../../net/stream";
import { Trouble } from "../../parts/trouble";

const kMost = 500;

/** What has happened to the task, the newest first. */
export function Happened({ id }: { id: string }) {
  const [events, setEvents] = useState<MachineEvent[]>([]);
  const [trouble, setTrouble] = useState<Refusal>();
  useEffect(() => {
    setEvents([]);
    return follow(`/v1/events?task=${encodeURIComponent(id)}&limit=${kMost}`, {
      heard: ({ data }) => setEvents((before) => [data as MachineEvent, ...before].slice(0, kMost)),
      refused: setTrouble,
    });
  }, [id]);
  return (
    <section aria-label="Events">
      <Trouble of={trouble} />
      {events.length === 0 ? <p>Nothing is known to have happened to it.</p> : (
        <ol class="happened">{events.map((event) => <li key={event.number}><time dateTime={event.at}>{new Date(event.at).toLocaleString()}</time> {event.message}</li>)}</ol>
      )}
    </section>
  );
}
