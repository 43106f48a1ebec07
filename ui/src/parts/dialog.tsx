import { useEffect, useId, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";

interface Shown { title: string; closed: () => void; children: (close: () => void) => ComponentChildren }

/** Over the page until it is closed, also by Escape; the focus goes back to where it was. */
export function Dialog({ title, closed, children }: Shown) {
  const own = useRef<HTMLDialogElement>(null), id = useId();
  useEffect(() => own.current!.showModal(), []);
  return (
    <dialog ref={own} aria-labelledby={id} onClose={closed}>
      <h2 id={id}>{title}</h2>
      {children(() => own.current!.close())}
    </dialog>
  );
}
