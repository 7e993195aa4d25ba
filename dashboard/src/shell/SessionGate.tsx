import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";

import { api, data, onSignedOut } from "../api/client";
import { ApiError } from "../api/problem";
import { sessionQuery } from "../api/session";
import { hub } from "../live/hub";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { SignIn } from "./SignIn";

let exchanging: Promise<string | null> | null = null;

/** Exchange the code of the address for a session, once; what went wrong, if anything. */
function exchange(code: string): Promise<string | null> {
  exchanging ??= api
    .POST("/api/v1/session", { body: { code, token: "" } })
    .then((answer) => {
      data(answer);
      return null;
    })
    .catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
  return exchanging;
}

/** Nothing of the page is shown before the controller knows who looks at it; then the same place as before. */
export function SessionGate({ code, children }: { code: string | null; children: ReactNode }) {
  const queries = useQueryClient();
  const [ready, setReady] = useState(code === null);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [out, setOut] = useState(false);
  useEffect(() => {
    if (code === null) return;
    void exchange(code).then((problem) => {
      setRefusal(problem);
      setReady(true);
    });
  }, [code]);
  useEffect(() => onSignedOut(() => setOut(true)), []);
  const session = useQuery({ ...sessionQuery, enabled: ready });
  const known = session.data !== undefined && !out;
  const reads = session.data?.scopes.includes("read") ?? false;
  useEffect(() => {
    if (!known || !reads) return undefined; // without the scope there is no stream to read
    hub.start();
    return () => hub.stop();
  }, [known, reads]);
  if (known) return children;
  const unknown = out || (session.error instanceof ApiError && session.error.status === 401);
  if (unknown) {
    const begun = () => {
      setOut(false);
      setRefusal(null);
      queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "session" });
      void queries.refetchQueries({ queryKey: ["session"] });
    };
    return <SignIn refusal={refusal} onSignedIn={begun} />;
  }
  if (session.error !== null) return <Failure error={session.error} retry={() => void session.refetch()} />;
  return <Loading what="who you are" />;
}
