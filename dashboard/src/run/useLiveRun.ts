import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { hub } from "../live/hub";

const SETTLE = 400;

/** What is shown of a pipeline, or of one of its runs, is read again when something happened to it. */
export function useLiveRun(pipeline: string, prefixes: readonly (readonly string[])[]): void {
  const queries = useQueryClient();
  const keys = JSON.stringify(prefixes);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const refresh = () => {
      timer = null;
      for (const queryKey of JSON.parse(keys) as string[][]) void queries.invalidateQueries({ queryKey });
    };
    hub.wantSensors(true);
    const stop = hub.onBatch(({ told, sensors }) => {
      const mine = told.some((one) => one.event.pipelineId === pipeline) || sensors.some((one) => one.pipeline === pipeline);
      if (mine) timer ??= setTimeout(refresh, SETTLE);
    });
    return () => {
      stop();
      hub.wantSensors(false);
      if (timer !== null) clearTimeout(timer);
    };
  }, [queries, pipeline, keys]);
}
