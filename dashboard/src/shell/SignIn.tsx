import { useState, type SubmitEvent } from "react";

import { api, data } from "../api/client";
import { Text } from "../parts/Text";

/** A token is entered once and exchanged for a session; the page does not keep it. */
export function SignIn({ refusal, onSignedIn }: { refusal: string | null; onSignedIn: () => void }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState(refusal);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      data(await api.POST("/api/v1/session", { body: { token: token.trim(), code: "" } }));
      setToken("");
      onSignedIn();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <h1>Interlock</h1>
      <p>
        This controller asks for a token. On its own machine, <code>interlock open</code> opens this page without one.
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <button type="submit" disabled={busy}>
          Sign in
        </button>
      </form>
      {problem !== null && (
        <p className="problem" role="alert">
          <Text>{problem}</Text>
        </p>
      )}
      <p className="muted">
        <code>interlock token create --scope operate --name you</code> makes a token.
      </p>
    </main>
  );
}
