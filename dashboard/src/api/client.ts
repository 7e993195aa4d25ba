// The one way to the API. Adds what writes by cookie need, keeps the clock in step, turns problems into errors.
import createClient, { type Middleware } from "openapi-fetch";

import { clock, parseTime } from "../time/clock";
import { ApiError, problemOf, UnreachableError } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

const listeners = new Set<() => void>();

/** Be told when the controller does not know us (any more). */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function signedOut(): void {
  listeners.forEach((listener) => {
    listener();
  });
}

const middleware: Middleware = {
  onRequest({ request }) {
    request.headers.set("X-Interlock", "1");
    return request;
  },
  async onResponse({ response, schemaPath }) {
    clock.sync(parseTime(response.headers.get("x-interlock-time")));
    if (response.ok) return undefined;
    const body: unknown = await response.json().catch(() => null);
    const error = problemOf(response, body);
    if (error.status === 401 && schemaPath !== "/api/v1/session") signedOut();
    throw error;
  },
  onError({ error }) {
    return error instanceof DOMException && error.name === "AbortError" ? error : new UnreachableError();
  },
};

export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin", cache: "no-store" });
api.use(middleware);

/** The data of an answer. Errors were thrown already; an answer without data is one of them. */
export function data<T>(answer: { data?: T; response: Response }): T {
  if (answer.data === undefined) throw new ApiError(answer.response.status, "the answer is empty", "", "");
  return answer.data;
}
