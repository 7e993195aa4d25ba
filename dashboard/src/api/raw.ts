// Requests whose answer is not plain JSON, by the same rules as the others.
import { clock, parseTime } from "../time/clock";
import { signedOut } from "./client";
import { problemOf, UnreachableError } from "./problem";

async function ask(path: string, init: RequestInit): Promise<Response> {
  const headers = { ...(init.headers as Record<string, string> | undefined), "X-Interlock": "1" };
  const response = await fetch(`/api/v1/${path}`, { ...init, headers, credentials: "same-origin", cache: "no-store" }).catch(() => {
    throw new UnreachableError();
  });
  clock.sync(parseTime(response.headers.get("x-interlock-time")));
  if (response.ok) return response;
  const error = problemOf(response, await response.json().catch(() => null));
  if (error.status === 401) signedOut();
  throw error;
}

export interface Output {
  text: string;
  next: number;
  complete: boolean;
  link: string;
}

/** A piece of what a job wrote. */
export async function readOutput(pipeline: string, runId: string, offset: number, signal: AbortSignal): Promise<Output> {
  const path = `pipelines/${encodeURIComponent(pipeline)}/jobs/${encodeURIComponent(runId)}/output?offset=${offset}`;
  const response = await ask(path, { signal });
  return {
    text: await response.text(),
    next: Number(response.headers.get("x-next-offset") ?? offset),
    complete: response.headers.get("x-complete") === "true",
    link: response.headers.get("x-link") ?? "",
  };
}

/** Act on a run: `2026-03-03:cancel`. The answer as it is. */
export async function actOnRun(pipeline: string, schedule: string, slot: string, body: unknown): Promise<Record<string, unknown>> {
  const path = ["pipelines", pipeline, "runs", schedule, slot].map(encodeURIComponent).join("/");
  const response = await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}
