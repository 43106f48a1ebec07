interface Shown { label: string; part: number | null | undefined; whole: number; says: (part: number) => string }

/** How much of something there is, as a bar and in words. Nothing where it is not known. */
export function Bar({ label, part, whole, says }: Shown) {
  if (part == null || whole <= 0) return null;
  const words = says(part);
  return (
    <div class="bar">
      <span>{label}</span>
      <meter aria-label={label} min={0} max={whole} value={part} aria-valuetext={words} />
      <span>{words}</span>
    </div>
  );
}
