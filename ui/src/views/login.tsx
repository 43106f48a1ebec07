import { useState } from "preact/hooks";
import type { Refusal } from "../net/api";
import { logIn } from "../net/session";

export function Login({ done }: { done: () => void }) {
  const [trouble, setTrouble] = useState<Refusal>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    try {
      await logIn(String(fields.get("secret")));
      done();
    } catch (error) {
      setTrouble(error as Refusal);
    }
  };
  return (
    <main class="login">
      <h1>Drover</h1>
      <form onSubmit={submit}>
        <label for="secret">Your token</label>
        <input id="secret" name="secret" type="password" autocomplete="current-password" required autofocus aria-describedby="where" />
        <p id="where">The daemon's credentials file has it. On the machine itself <code>drover ui</code> needs none.</p>
        {trouble ? <p class="trouble" role="alert">{trouble.message}. {trouble.hint}</p> : null}
        <button type="submit">Log in</button>
      </form>
    </main>
  );
}
