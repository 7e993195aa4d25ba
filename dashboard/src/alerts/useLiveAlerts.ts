import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { Schemas } from "../api/client";
import { hub } from "../live/hub";
import { clock } from "../time/clock";

const SETTLE = 500;
const SOONEST = 2000;
const LATEST = 300_000;

/** When a delivery that is under way may have become something else, in milliseconds from now; null without any. */
export function nextLook(deliveries: readonly Schemas["DeliveryView"][], now: number): number | null {
  const due = deliveries.filter((one) => one.settledAt === null || one.settledAt === undefined).map((one) => Date.parse(one.dueAt ?? "") - now);
  const soonest = Math.min(...due.filter((one) => !Number.isNaN(one)));
  return due.length === 0 ? null : Math.min(Math.max(Number.isFinite(soonest) ? soonest : 0, SOONEST), LATEST);
}

/** Alerts come of events, so they are read again after some; a delivery has no event of its own, but says when it is due. */
export function useLiveAlerts(deliveries: readonly Schemas["DeliveryView"][] | undefined): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const stop = hub.onBatch(({ told }) => {
      if (told.length === 0) return;
      timer ??= setTimeout(() => {
        timer = null;
        void queries.invalidateQueries({ queryKey: ["alerts"] });
      }, SETTLE);
    });
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [queries]);
  useEffect(() => {
    const wait = nextLook(deliveries ?? [], clock.now());
    if (wait === null) return undefined;
    const timer = setTimeout(() => {
      if (!document.hidden) void queries.invalidateQueries({ queryKey: ["alerts"] });
    }, wait);
    return () => clearTimeout(timer);
  }, [queries, deliveries]);
}
