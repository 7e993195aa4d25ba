import { api } from "./client";

/** A piece of what a job wrote. */
export interface Output {
  text: string;
  next: number;
  complete: boolean;
  link: string;
}

/** The piece that begins at an offset; its length is the controller's to choose. */
export async function readOutput(pipeline: string, runId: string, offset: number, signal: AbortSignal): Promise<Output> {
  const { data, response } = await api.GET("/api/v1/pipelines/{pipeline}/jobs/{run_id}/output", {
    params: { path: { pipeline, run_id: runId }, query: { offset } },
    parseAs: "text",
    signal,
  });
  return {
    text: data ?? "",
    next: Number(response.headers.get("x-next-offset") ?? offset),
    complete: response.headers.get("x-complete") === "true",
    link: response.headers.get("x-link") ?? "",
  };
}
