// @vitest-environment jsdom
// Every view in every state that does not come from data: loading, refused, not found, failed, and tried again.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRouter, RouterProvider } from "@tanstack/react-router";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

type Answer = (url: string) => Promise<Response>;

// The API's client takes these when it is loaded: they have to be there before.
const stub = vi.hoisted(() => {
  const asked: string[] = [];
  const state = { asked, answer: (() => new Promise(() => undefined)) as Answer };
  const Native = globalThis.Request;
  // The page's addresses are relative, and the signals of jsdom are not those of the fetch of Node.
  globalThis.Request = class extends Native {
    constructor(input: RequestInfo | URL, init?: RequestInit) {
      super(typeof input === "string" ? new URL(input, "http://localhost").href : input, { ...init, signal: null });
    }
  };
  globalThis.fetch = (input) => {
    const url = input instanceof Native ? input.url : String(input);
    asked.push(url);
    return state.answer(url);
  };
  return state;
});

const { router } = await import("./router");
const { onSignedOut } = await import("./api/client");

function problem(status: number, detail: string): Answer {
  const body = JSON.stringify({ type: `urn:interlock:problem:of-${status}`, title: "", status, detail });
  return () => Promise.resolve(new Response(body, { status, headers: { "Content-Type": "application/problem+json", "X-Request-Id": "req-17" } }));
}

const VIEWS = [
  ["Overview", "/", "overview"],
  ["Pipeline", "/pipelines/gold", "pipelines/gold"],
  ["Run", "/pipelines/gold/runs/cron/2026-03-03", "pipelines/gold/why"],
  ["Events", "/events", "events"],
  ["SLA", "/sla", "stats/sla"],
  ["Graph", "/graph?root=gold", "graph"],
  ["Hazards", "/hazards", "hazards"],
  ["Alerts", "/alerts", "alerts"],
  ["Controller", "/controller", "controller"],
] as const;

async function show(path: string): Promise<void> {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  queries.setQueryData(["session"], { name: "ana", scopes: ["read", "operate", "admin"], pipelines: [], owners: [], required: true });
  const here = createRouter({ ...router.options, history: createMemoryHistory({ initialEntries: [path] }) });
  render(
    <QueryClientProvider client={queries}>
      <RouterProvider router={here} />
    </QueryClientProvider>,
  );
  await waitFor(() => expect(document.querySelector("main")).not.toBeNull());
}

beforeEach(() => {
  stub.asked.length = 0;
  window.matchMedia = ((query: string) => ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined })) as never;
  window.scrollTo = () => undefined;
});

afterEach(cleanup);

describe.each(VIEWS)("%s", (_, path, api) => {
  it("says that it is being read", async () => {
    stub.answer = () => new Promise(() => undefined);
    await show(path);
    await waitFor(() => expect(screen.getAllByText(/^Reading .*…$/).length).toBeGreaterThan(0));
    expect(stub.asked.map((url) => new URL(url).pathname)).toContain(`/api/v1/${api}`);
  });

  it.each([
    [500, "the store is locked", "The controller could not answer"],
    [403, "needs the scope read", "Not allowed"],
    [404, "there is no pipeline gold: did you mean golden?", "Not found"],
  ])("says what a %i is about, with the request, and tries again", async (status, detail, title) => {
    stub.answer = problem(status, detail);
    await show(path);
    await waitFor(() => expect(screen.getAllByText(title).length).toBeGreaterThan(0));
    expect(screen.getAllByText(detail).length).toBeGreaterThan(0);
    expect(screen.getAllByText("Request req-17").length).toBeGreaterThan(0);
    const before = stub.asked.length;
    fireEvent.click(screen.getAllByRole("button", { name: "Try again" })[0] as HTMLElement);
    await waitFor(() => expect(stub.asked.length).toBeGreaterThan(before));
  });

  it("asks who is there when the session is over", async () => {
    const over = vi.fn();
    const stop = onSignedOut(over);
    stub.answer = problem(401, "sign in");
    await show(path);
    await waitFor(() => expect(over).toHaveBeenCalled());
    stop();
  });
});

describe("nothing to show", () => {
  const lanes = { at: "2026-03-03T10:00:00Z", rate: 1, bucket: "hour", from: "2026-03-02T14:00:00Z", to: "2026-03-03T14:00:00Z", position: "1-1", total: 0, counts: {}, owners: [] };
  it.each([
    ["/events", "/api/v1/events", {}, /No event/],
    ["/alerts", "/api/v1/alerts", {}, "No alert was sent yet."],
    ["/", "/api/v1/overview", lanes, /interlock init/],
    ["/?q=silver", "/api/v1/overview", lanes, /No pipeline/],
  ])("%s says so", async (path, api, body, text) => {
    const answer = JSON.stringify({ ...body, items: [], next: null });
    stub.answer = (url) =>
      new URL(url).pathname === api
        ? Promise.resolve(new Response(answer, { headers: { "Content-Type": "application/json" } }))
        : new Promise(() => undefined);
    await show(path);
    await waitFor(() => expect(screen.getAllByText(text).length).toBeGreaterThan(0));
  });
});
