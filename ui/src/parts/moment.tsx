const kShort = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const kLong = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

/** A time on the clock of whoever reads it. */
export function Moment({ at }: { at: string | Date | undefined }) {
  const time = new Date(at ?? NaN);
  if (Number.isNaN(time.getTime())) return null;
  return <time dateTime={time.toISOString()} title={kLong.format(time)}>{kShort.format(time)}</time>;
}
