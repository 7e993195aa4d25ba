import { useCallback, useEffect, useRef, useState } from "react";

import { api, data } from "../api/client";
import { hub } from "../live/hub";
import type { EventView, Told } from "../live/stream";
import { clock } from "../time/clock";
import { sinceInstant, type EventSearch } from "./eventSearch";
import { append, MOST, prepend } from "./feed";

const PAGE = 200;

interface State {
  events: readonly EventView[];
  next: string | null;
  loading: boolean;
  error: unknown;
}

const BEGIN: State = { events: [], next: null, loading: true, error: null };

/** The events that fit a filter: pages of the past, and what happens, unless it is paused. */
export function useEvents(search: EventSearch, paused: boolean) {
  const [state, setState] = useState<State>(BEGIN);
  const [waiting, setWaiting] = useState<Told[]>([]);
  const [asked, setAsked] = useState(0);
  const key = JSON.stringify(search);
  const stopped = useRef(new AbortController());
  const pausing = useRef(paused);
  useEffect(() => {
    pausing.current = paused;
  }, [paused]);

  const read = useCallback(
    async (cursor: string | null, signal: AbortSignal) => {
      const wanted = JSON.parse(key) as EventSearch;
      const since = sinceInstant(wanted.since, clock.now());
      const query = {
        limit: PAGE,
        ...(wanted.pipeline === undefined ? {} : { pipeline: wanted.pipeline }),
        ...(wanted.type === undefined ? {} : { type: [wanted.type as EventView["type"]] }),
        ...(wanted.severity === undefined ? {} : { severity: wanted.severity }),
        ...(wanted.q === undefined ? {} : { q: wanted.q }),
        ...(since === undefined ? {} : { since }),
        ...(cursor === null ? {} : { cursor }),
      };
      return data(await api.GET("/api/v1/events", { params: { query }, signal }));
    },
    [key],
  );

  useEffect(() => {
    const stop = new AbortController();
    stopped.current = stop;
    setState(BEGIN);
    setWaiting([]);
    const begin = async () => {
      try {
        const page = await read(null, stop.signal);
        setState((now) => ({ events: append(now.events, page.items), next: page.next ?? null, loading: false, error: null }));
      } catch (error) {
        if (!stop.signal.aborted) setState((now) => ({ ...now, loading: false, error }));
      }
    };
    void begin();
    const wanted = JSON.parse(key) as EventSearch;
    const leave = hub.onBatch(({ told }) => {
      if (told.length === 0) return;
      if (pausing.current) setWaiting((now) => [...now, ...told].slice(-MOST));
      else setState((now) => ({ ...now, events: prepend(now.events, told, wanted) }));
    });
    const gap = hub.onGap(() => setAsked((now) => now + 1));
    return () => {
      stop.abort();
      leave();
      gap();
    };
  }, [key, read, asked]);

  useEffect(() => {
    if (paused || waiting.length === 0) return;
    const wanted = JSON.parse(key) as EventSearch;
    setState((now) => ({ ...now, events: prepend(now.events, waiting, wanted) }));
    setWaiting([]);
  }, [paused, waiting, key]);

  const older = useCallback(async () => {
    if (state.next === null || state.loading) return;
    setState((now) => ({ ...now, loading: true }));
    try {
      const page = await read(state.next, stopped.current.signal);
      setState((now) => ({ events: append(now.events, page.items), next: page.next ?? null, loading: false, error: null }));
    } catch (error) {
      if (!stopped.current.signal.aborted) setState((now) => ({ ...now, loading: false, error }));
    }
  }, [read, state.next, state.loading]);

  return { ...state, waiting: waiting.length, older, retry: () => setAsked((now) => now + 1) };
}
