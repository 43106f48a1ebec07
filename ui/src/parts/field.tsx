import { useId } from "preact/hooks";

interface Shown {
  label: string;
  name: string;
  value?: string;
  type?: "text" | "number";
  hint?: string;
  wrong?: boolean;
  min?: number;
  required?: boolean;
}

/** A labelled field of a form. */
export function Field({ label, name, value = "", type = "text", hint, wrong = false, ...rest }: Shown) {
  const id = useId();
  const own = { id, name, defaultValue: value, autocomplete: "off", spellcheck: false, "aria-invalid": wrong || undefined, "aria-describedby": hint ? `${id}-hint` : undefined, ...rest };
  return (
    <p class="field">
      <label for={id}>{label}</label>
      {type === "number" ? <input type="number" {...own} /> : <input type="text" {...own} />}
      {hint ? <span class="hint" id={`${id}-hint`}>{hint}</span> : null}
    </p>
  );
}
