import { useRef, useState } from "preact/hooks";
import type { Refusal } from "../../net/api";
import { carryOut, tryOut, type Change } from "../../net/sharing";
import { Changes, differences, type Difference } from "../../parts/changes";
import { Dialog } from "../../parts/dialog";
import { Field } from "../../parts/field";
import { Trouble } from "../../parts/trouble";
import { shown, type Form } from "./forms";

interface Shown { form: Form; done: (words: string) => void; closed: () => void }
interface Preview { change: Change; different: Difference[] }

/** First what would be different, which the daemon has tried; then it is carried out, as it was tried. */
export function Editor({ form, done, closed }: Shown) {
  const fields = useRef<HTMLFormElement>(null);
  const [preview, setPreview] = useState<Preview>();
  const [trouble, setTrouble] = useState<Refusal>();
  const [busy, setBusy] = useState(false);
  const attempt = async (act: () => Promise<void>) => {
    setBusy(true);
    setTrouble(undefined);
    await act().catch(setTrouble);
    setBusy(false);
  };
  const look = (event: SubmitEvent) => {
    event.preventDefault();
    const said = new Map([...new FormData(fields.current!)].map(([name, value]) => [name, String(value).trim()]));
    const wanted = form.read(said), change = { target: form.target, body: { [form.list]: [wanted] } };
    void attempt(async () => {
      await tryOut(change);
      setPreview({ change, different: differences(shown(form.before), shown(wanted)) });
    });
  };
  const apply = (close: () => void) => attempt(async () => {
    await carryOut(preview!.change);
    done(`${form.title}: done.`);
    close();
  });
  /** "/queues/0/limit/gpus" is about the field "limit/gpus". */
  const wrong = trouble?.field.replace(/^\/[^/]*\/\d+\//, "");
  return (
    <Dialog title={form.title} closed={closed}>
      {(close) => (
        <form class="editor" ref={fields} onSubmit={look} onInput={() => setPreview(undefined)}>
          <div class="asked">{form.inputs.map(({ name, ...input }) => <Field key={name} name={name} {...input} wrong={name === wrong} />)}</div>
          {preview ? <div role="status"><p>The daemon would take it.</p><Changes of={preview.different} heads={["Now", "Then"]} /></div> : null}
          <Trouble of={trouble} />
          <p class="tools">
            <button type="button" class="other" onClick={close}>Leave it</button>
            <button type="submit" class={preview ? "other" : ""} disabled={busy}>Preview</button>
            {preview && preview.different.length > 0 ? <button type="button" disabled={busy} onClick={() => void apply(close)}>Apply</button> : null}
          </p>
        </form>
      )}
    </Dialog>
  );
}
