import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, data } from "../api/client";
import { hub } from "../live/hub";
import { columnsFor, endOf, type Span } from "./columns";
import type { Overview, Standing } from "./states";
import { clock } from "../time/clock";

export interface Question {
  span: Span;
  owner: string | undefined;
  state: Standing[] | undefined;
  q: string | undefined;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/** What is asked of the controller: the columns by its own clock. */
function parameters(question: Question) {
  const columns = columnsFor(question.span, clock.now());
  return {
    from: iso(columns.from),
    to: iso(endOf(columns)),
    bucket: columns.bucket,
    ...(question.owner === undefined ? {} : { owner: question.owner }),
    ...(question.state === undefined ? {} : { state: question.state }),
    ...(question.q === undefined ? {} : { q: question.q }),
  };
}

async function page(question: Question, cursor: string | null, signal: AbortSignal): Promise<Overview> {
  const query = { ...parameters(question), limit: 5000, ...(cursor === null ? {} : { cursor }) };
  return data(await api.GET("/api/v1/overview", { params: { query }, signal }));
}

/** Every lane: all pages of them. */
async function whole(question: Question, signal: AbortSignal): Promise<Overview> {
  const first = await page(question, null, signal);
  const items = [...first.items];
  let cursor = first.next ?? null;
  while (cursor !== null) {
    const next = await page(question, cursor, signal);
    items.push(...next.items);
    cursor = next.next ?? null;
  }
  hub.offer(first.position);
  return { ...first, items, next: null };
}

export function overviewQuery(question: Question) {
  return queryOptions({
    queryKey: ["overview", question],
    queryFn: ({ signal }) => whole(question, signal),
    // Only the very same filter is shown while its columns move on; nothing old under a new filter.
    placeholderData: (before, query) =>
      query !== undefined && JSON.stringify(query.queryKey) === JSON.stringify(["overview", question])
        ? keepPreviousData(before)
        : undefined,
  });
}

/** Some lanes, read again for the same columns. */
export async function readLanes(shown: Overview, ids: readonly string[], signal: AbortSignal): Promise<Overview> {
  const query = { from: shown.from, to: shown.to, bucket: shown.bucket, pipeline: [...ids], limit: ids.length };
  return data(await api.GET("/api/v1/overview", { params: { query }, signal }));
}
