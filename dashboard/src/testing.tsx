// For tests: the whole page in jsdom, with a controller that answers as a test says.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRouter, RouterProvider, type RouterHistory } from "@tanstack/react-router";
import { configure, render, waitFor } from "@testing-library/react";
import { expect } from "vitest";

export type Answer = (url: URL, init: { method: string; body: string }) => Response | Promise<Response>;

// A busy machine may take its time; nothing here is about how long something takes.
configure({ asyncUtilTimeout: 10_000 });

/** What was asked of the controller, and what it says; both for the test that runs. */
export const controller: { asked: string[]; answer: Answer } = { asked: [], answer: () => never() };

/** An answer that does not come. */
export function never(): Promise<Response> {
  return new Promise(() => undefined);
}

export function json(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
}

export function problem(status: number, detail: string): Response {
  const body = { type: `urn:interlock:problem:of-${status}`, title: "", status, detail };
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/problem+json", "X-Request-Id": "req-17" } });
}

/** What is asked for, below the API's root. */
export function pathOf(url: URL): string {
  return decodeURIComponent(url.pathname).replace("/api/v1/", "");
}

/** Answers by path; what is not among them does not come. */
export function answers(byPath: Record<string, unknown>): Answer {
  return (url) => {
    const path = pathOf(url);
    if (!(path in byPath)) return never();
    const body = byPath[path];
    return body instanceof Response ? body.clone() : json(body);
  };
}

// The API's client takes these when it is loaded, which `show` does: they have to be there before.
const Native = globalThis.Request;
// The page's addresses are relative, and the signals of jsdom are not those of the fetch of Node.
globalThis.Request = class extends Native {
  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(typeof input === "string" ? new URL(input, "http://localhost").href : input, { ...init, signal: null });
  }
};
globalThis.fetch = async (input, init) => {
  const request = input instanceof Native ? input : new globalThis.Request(input, init);
  const url = new URL(request.url);
  controller.asked.push(`${request.method} ${pathOf(url)}${url.search}`);
  return controller.answer(url, { method: request.method, body: await request.clone().text() });
};

export const EVERYTHING = { name: "ana", scopes: ["read", "sensor:write", "job:write", "operate", "admin"], pipelines: [], owners: [], required: true };

/** What jsdom lacks. */
function complete(): void {
  window.matchMedia = ((query: string) => ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined })) as never;
  window.scrollTo = () => undefined;
  globalThis.CSS = { escape: (text: string) => text } as never;
  HTMLDialogElement.prototype.showModal = function show() {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function close() {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  };
}

/** Open the page at an address; its history, to see and change where it is. */
export async function show(path: string, session: object = EVERYTHING): Promise<RouterHistory> {
  complete();
  const { router } = await import("./router");
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  queries.setQueryData(["session"], session);
  const history = createMemoryHistory({ initialEntries: [path] });
  const here = createRouter({ ...router.options, history });
  render(
    <QueryClientProvider client={queries}>
      <RouterProvider router={here} />
    </QueryClientProvider>,
  );
  await waitFor(() => expect(document.querySelector("main")).not.toBeNull());
  return history;
}
