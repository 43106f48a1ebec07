import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

type Shown<P> = { view: () => Promise<ComponentType<P>> } & P;

/** A view whose files are brought when it is wanted. */
export function Later<P extends object>({ view, ...rest }: Shown<P>) {
  const [Found, setFound] = useState<ComponentType<P>>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let current = true;
    view().then((found) => current && setFound(() => found), () => current && setFailed(true));
    return () => {
      current = false;
    };
  }, [view]);
  if (failed) return <p role="alert">A part of this page could not be brought. Load the page anew: the daemon may have another version now.</p>;
  return Found ? <Found {...(rest as unknown as P)} /> : <p role="status">…</p>;
}
