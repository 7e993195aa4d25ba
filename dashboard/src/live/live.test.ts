// @vitest-environment jsdom
// The stream, and what becomes of it when it is silent, or gone for long.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Hub } from "./hub";
import { readStream, SILENCE } from "./stream";

type Headers_ = Record<string, string>;

/** A stream that begins at a position, and ends when the test says so. */
function stream(position: string) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      given.enqueue(new TextEncoder().encode(`id: ${position}\n\n: beat\n\n`));
    },
  });
  return { response: new Response(body), write: (text: string) => controller?.enqueue(new TextEncoder().encode(text)), end: () => controller?.close() };
}

const connections: Headers_[] = [];
let answer: () => Response | Promise<Response>;

beforeEach(() => {
  vi.useFakeTimers();
  connections.length = 0;
  globalThis.fetch = async (_, init) => {
    connections.push(init?.headers as Headers_);
    const given = answer();
    return new Promise((resolve, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new DOMException("gone", "AbortError")));
      void Promise.resolve(given).then(resolve, reject);
    });
  };
});

afterEach(() => {
  vi.useRealTimers();
});

describe("a connection", () => {
  const handlers = { opened: () => undefined, told: () => undefined, sensor: () => undefined };

  it("is taken for lost after 40 seconds without a beat", async () => {
    answer = () => new Promise<Response>(() => undefined);
    const ended = readStream({ position: "7-1", sensors: [], signal: new AbortController().signal }, handlers);
    const seen = vi.fn();
    void ended.then(seen);
    await vi.advanceTimersByTimeAsync(SILENCE - 1);
    expect(seen).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await ended).toBe("lost");
    expect(SILENCE).toBe(40_000);
    expect(connections[0]).toEqual({ "Last-Event-ID": "7-1" });
  });

  it("says that nobody is signed in, which EventSource would hide", async () => {
    answer = () => new Response("", { status: 401 });
    expect(await readStream({ position: null, sensors: [], signal: new AbortController().signal }, handlers)).toBe("signed-out");
  });

  it.each(["closed", "dropped"])("is over when the controller says %s", async (type) => {
    const open = stream("1-1");
    answer = () => open.response;
    const ended = readStream({ position: null, sensors: [], signal: new AbortController().signal }, handlers);
    open.write(`event: ${type}\ndata: {}\n\n`);
    expect(await ended).toBe("closed");
  });
});

describe("a gap", () => {
  /** A hub that was live at a position, whose connection broke, and cannot be made for so long. */
  async function lostFor(milliseconds: number) {
    const hub = new Hub();
    const gap = vi.fn();
    hub.onGap(gap);
    const first = stream("5-1");
    answer = () => first.response;
    hub.start();
    hub.offer("5-1");
    await vi.advanceTimersByTimeAsync(10);
    expect(hub.snapshot().phase).toBe("live");
    gap.mockClear();
    answer = () => Promise.reject(new TypeError("refused"));
    first.end();
    await vi.advanceTimersByTimeAsync(milliseconds);
    expect(hub.snapshot().phase).toBe("lost");
    expect(hub.snapshot().retryIn).toBeGreaterThan(0);
    const second = stream("9-1");
    answer = () => second.response;
    connections.length = 0;
    hub.retryNow();
    await vi.advanceTimersByTimeAsync(10);
    expect(hub.snapshot().phase).toBe("live");
    hub.stop();
    return { gap, headers: connections[0] };
  }

  it("of minutes is resumed where it stopped", async () => {
    const { gap, headers } = await lostFor(4 * 60_000);
    expect(headers).toEqual({ "Last-Event-ID": "5-1" });
    expect(gap).not.toHaveBeenCalled();
  });

  it("of more than five minutes is not replayed: everything is read again", async () => {
    const { gap, headers } = await lostFor(5 * 60_000 + 31_000);
    expect(headers).toEqual({});
    expect(gap).toHaveBeenCalledTimes(1);
  });
});
