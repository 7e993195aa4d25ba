// One connection to the event stream, read by fetch: EventSource hides a 401, and event types it was not told of.
import { createParser } from "eventsource-parser";

import type { Schemas } from "../api/client";
import { clock, parseTime } from "../time/clock";

export type EventView = Schemas["EventView"];

/** An event, and the position behind it. */
export interface Told {
  position: string;
  event: EventView;
}

/** A sensor was written; what it says is to be read again. */
export interface SensorNotice {
  pipeline: string;
  key: string;
  receivedAt: string;
}

/** Why a connection ended: the controller said so, it broke, or we are not known (any more). */
export type Ending = "closed" | "lost" | "signed-out";

export interface Handlers {
  opened(position: string | null): void;
  told(told: Told): void;
  sensor(notice: SensorNotice): void;
}

export interface Wanted {
  position: string | null;
  /** The pipelines whose sensors are shown. */
  sensors: readonly string[];
  signal: AbortSignal;
}

/** No sign of life for this long: the connection is taken for lost. A beat comes every 15 s. */
export const SILENCE = 40_000;

export async function readStream(wanted: Wanted, handlers: Handlers): Promise<Ending> {
  const silence = new AbortController();
  const signal = AbortSignal.any([wanted.signal, silence.signal]);
  let timer = setTimeout(() => {
    silence.abort();
  }, SILENCE);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      silence.abort();
    }, SILENCE);
  };
  try {
    const response = await fetch(`/api/v1/events/stream${sensorQuery(wanted.sensors)}`, {
      headers: wanted.position === null ? {} : { "Last-Event-ID": wanted.position },
      credentials: "same-origin",
      cache: "no-store",
      signal,
    });
    if (response.status === 401) return "signed-out";
    if (!response.ok || response.body === null) return "lost";
    clock.sync(parseTime(response.headers.get("x-interlock-time")));
    return await readBody(response.body, handlers, alive);
  } catch {
    return "lost";
  } finally {
    clearTimeout(timer);
  }
}

function sensorQuery(pipelines: readonly string[]): string {
  if (pipelines.length === 0) return "";
  return `?${new URLSearchParams([["sensors", "true"], ...pipelines.map((pipeline) => ["sensorsOf", pipeline])]).toString()}`;
}

async function readBody(body: ReadableStream<Uint8Array>, handlers: Handlers, alive: () => void): Promise<Ending> {
  const seen: { ending: Ending | null; opened: boolean } = { ending: null, opened: false };
  const open = (position: string | null) => {
    if (!seen.opened) handlers.opened(position);
    seen.opened = true;
  };
  const parser = createParser({
    onComment: (comment) => {
      clock.sync(parseTime(comment));
    },
    onRetry: () => undefined,
    onEvent: (message) => {
      open(message.id ?? null);
      if (message.event === "closed" || message.event === "dropped") seen.ending = "closed";
      else if (message.event === "sensor") handlers.sensor(JSON.parse(message.data) as SensorNotice);
      else handlers.told({ position: message.id ?? "", event: JSON.parse(message.data) as EventView });
    },
  });
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return seen.ending ?? "lost";
    alive();
    const text = decoder.decode(value, { stream: true });
    // The first lines tell where the stream begins, before any event: they belong to no message.
    if (!seen.opened) open(/^id: (\d+-\d+)$/m.exec(text)?.[1] ?? null);
    parser.feed(text);
    if (seen.ending !== null) {
      await reader.cancel().catch(() => undefined);
      return seen.ending;
    }
  }
}
