import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { hub } from "../live/hub";

const SETTLE = 400;

/** The pipelines that parts of this page show: a dialog that closes must not end what the page behind it wants. */
const shown: string[] = [];

function show(pipeline: string): () => void {
  shown.push(pipeline);
  hub.wantSensors([...new Set(shown)]);
  return () => {
    shown.splice(shown.indexOf(pipeline), 1);
    hub.wantSensors([...new Set(shown)]);
  };
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
    const later = () => {
      timer ??= setTimeout(refresh, SETTLE);
    };
    const hide = show(pipeline);
    const stopGaps = hub.onSensorGap(later);
    const stop = hub.onBatch(({ told, sensors }) => {
      const mine = told.some((one) => one.event.pipelineId === pipeline) || sensors.some((one) => one.pipeline === pipeline);
      if (mine) later();
    });
    return () => {
      stop();
      stopGaps();
      hide();
      if (timer !== null) clearTimeout(timer);
    };
  }, [queries, pipeline, keys]);
}
