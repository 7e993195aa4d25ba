import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { hub } from "../live/hub";

const SETTLE = 400;

/** How many parts of this page show a pipeline: a dialog that closes must not end what the page behind it wants. */
let shown = 0;

function count(step: 1 | -1): void {
  shown += step;
  hub.wantSensors(shown > 0);
}

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
    count(1);
    const stop = hub.onBatch(({ told, sensors }) => {
      const mine = told.some((one) => one.event.pipelineId === pipeline) || sensors.some((one) => one.pipeline === pipeline);
      if (mine) timer ??= setTimeout(refresh, SETTLE);
    });
    return () => {
      stop();
      count(-1);
      if (timer !== null) clearTimeout(timer);
    };
  }, [queries, pipeline, keys]);
}
