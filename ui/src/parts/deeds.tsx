// What somebody does on a page, and what became of it.

import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Refusal } from "../net/api";
import { Dialog } from "./dialog";
import { Trouble } from "./trouble";

/** Does it, and says what was done. Throws a Refusal. */
export type Deed = () => Promise<string>;
export interface Question { title: string; verb: string; says: ComponentChildren; deed: Deed }

interface Asked { question: Question; done: (words: string) => void; closed: () => void }

function Confirm({ question: { title, verb, says, deed }, done, closed }: Asked) {
  const [trouble, setTrouble] = useState<Refusal>();
  const [busy, setBusy] = useState(false);
  const go = async (close: () => void) => {
    setBusy(true);
    try {
      done(await deed());
      close();
    } catch (error) {
      setTrouble(error as Refusal);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} closed={closed}>
      {(close) => (
        <>
          {says}
          <Trouble of={trouble} />
          <p class="tools">
            <button type="button" class="other" onClick={close}>Leave it</button>
            <button type="button" disabled={busy} onClick={() => void go(close)}>{verb}</button>
          </p>
        </>
      )}
    </Dialog>
  );
}

/** `run` does it at once, `ask` when it was confirmed; `shown` belongs below the heading. */
export function useDeeds() {
  const [said, setSaid] = useState("");
  const [trouble, setTrouble] = useState<Refusal>();
  const [question, setQuestion] = useState<Question>();
  const say = (words: string) => {
    setTrouble(undefined);
    setSaid(words);
  };
  const run = (deed: Deed) => {
    say("");
    deed().then(say, setTrouble);
  };
  const ask = (next: Question) => {
    say("");
    setQuestion(next);
  };
  const shown = (
    <>
      <p class="said" role="status">{said}</p>
      <Trouble of={trouble} />
      {question ? <Confirm question={question} done={say} closed={() => setQuestion(undefined)} /> : null}
    </>
  );
  return { run, ask, say, shown };
}
