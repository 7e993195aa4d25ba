// Events patch the lanes at once; what an event does not say (why it waits, what comes next) is read again by whoever
// shows the lane. Pure: the old overview and events in, the new one out, unchanged lanes being the same objects.
import type { EventView, Told } from "../live/stream";
import { columnOfRun, type Columns } from "./columns";
import { LETTER_OF, STANDING_OF, type Lane, type Overview, type Standing } from "./states";

type Current = NonNullable<Lane["current"]>;

/** What an event makes of its run. A failure is final only when no retry is left, which a further event says. */
const WORDS: Record<string, string> = {
  TRIGGER_STARTED: "waiting",
  JOB_TRIGGERED: "running",
  JOB_STARTED: "running",
  JOB_COMPLETED: "done",
  JOB_FAILED: "waiting",
  JOB_TIMEOUT: "waiting",
  RETRY_EXHAUSTED: "failed",
  JOB_POLL_EXHAUSTED: "failed",
  TRIGGER_UNCERTAIN: "failed",
  INFRA_FAILURE: "failed",
  SFN_TIMEOUT: "failed",
  VALIDATION_EXHAUSTED: "held",
  SENSOR_DEADLINE_EXPIRED: "held",
  SCHEDULE_MISSED: "missed",
  IRREGULAR_SCHEDULE_MISSED: "missed",
};
const ALERTS: Record<string, "w" | "b"> = {
  SLA_WARNING: "w",
  RELATIVE_SLA_WARNING: "w",
  SLA_BREACH: "b",
  RELATIVE_SLA_BREACH: "b",
};
/** What changes a lane in a way that only the controller can tell. */
const LOOK_AGAIN = new Set(["CONFIG_INVALID", "CONFIG_RESTORED", "RUN_WITHDRAWN", "JOB_CANCELLED", "PIPELINE_EXCLUDED"]);

export interface Applied {
  overview: Overview;
  /** Lanes whose words or cells the events do not fully tell. */
  touched: Set<string>;
  /** A pipeline that is not among the lanes, or one that is gone. */
  unknown: boolean;
}

export function columnsOf(overview: Pick<Overview, "bucket" | "from" | "to">): Columns {
  const from = Date.parse(overview.from);
  const length = overview.bucket === "hour" ? 3_600_000 : 86_400_000;
  return { bucket: overview.bucket, from, count: Math.round((Date.parse(overview.to) - from) / length) };
}

/** Is an event older than what is shown? Its number says so; one that was read by time is compared by time. */
export function isOld(told: Told, overview: Overview): boolean {
  const [seq] = told.position.split("-");
  const [shown] = overview.position.split("-");
  if (Number(seq) > 0) return Number(seq) <= Number(shown);
  return Date.parse(told.event.timestamp) < Date.parse(overview.at);
}

export function applyEvents(overview: Overview, batch: readonly Told[]): Applied {
  const touched = new Set<string>();
  let unknown = false;
  const columns = columnsOf(overview);
  const changed = new Map<string, Lane>();
  const lanes = new Map(overview.items.map((lane) => [lane.id, lane]));
  for (const told of batch) {
    if (isOld(told, overview)) continue;
    const event = told.event;
    const lane = changed.get(event.pipelineId) ?? lanes.get(event.pipelineId);
    if (lane === undefined || isRemoval(event.type)) {
      unknown = true;
      continue;
    }
    if (LOOK_AGAIN.has(event.type)) touched.add(lane.id);
    const next = applyEvent(lane, event, columns);
    if (next !== lane) {
      changed.set(lane.id, next);
      touched.add(lane.id);
    }
  }
  if (changed.size === 0) return { overview, touched, unknown };
  const items = overview.items.map((lane) => changed.get(lane.id) ?? lane);
  return { overview: { ...overview, items, counts: recount(overview, changed) }, touched, unknown };
}

/** Lanes that were read again take the place of the old ones, unless an event has said more since. */
export function replaceLanes(overview: Overview, fresh: Overview): Overview {
  const lanes = new Map(fresh.items.map((lane) => [lane.id, lane]));
  const changed = new Map<string, Lane>();
  for (const lane of overview.items) {
    const next = lanes.get(lane.id);
    if (next !== undefined && next.cells.length === lane.cells.length) changed.set(lane.id, next);
  }
  if (changed.size === 0) return overview;
  const items = overview.items.map((lane) => changed.get(lane.id) ?? lane);
  return { ...overview, items, counts: recount(overview, changed) };
}

function recount(overview: Overview, changed: ReadonlyMap<string, Lane>): Overview["counts"] {
  const counts = { ...overview.counts };
  for (const lane of overview.items) {
    const next = changed.get(lane.id);
    if (next === undefined || next.standing === lane.standing) continue;
    counts[lane.standing] = Math.max((counts[lane.standing] ?? 0) - 1, 0);
    counts[next.standing] = (counts[next.standing] ?? 0) + 1;
  }
  return counts;
}

function applyEvent(lane: Lane, event: EventView, columns: Columns): Lane {
  const word = WORDS[event.type];
  if (word !== undefined) return withWord(lane, event, word, columns);
  const alert = ALERTS[event.type];
  if (alert !== undefined) return withAlert(lane, event, alert, columns);
  if (event.type === "SLA_MET" || event.type === "SLA_RECOVERED") return withVerdict(lane, event);
  return lane;
}

function isRemoval(type: string): boolean {
  return type === "PIPELINE_REMOVED";
}

function isCurrent(lane: Lane, event: EventView): boolean {
  return lane.current?.schedule === event.scheduleId && lane.current.date === event.date;
}

function withWord(lane: Lane, event: EventView, word: string, columns: Columns): Lane {
  const known = isCurrent(lane, event);
  const openedAt = known ? (lane.current?.openedAt ?? event.timestamp) : event.timestamp;
  const cells = placed(lane, columnOfRun(columns, event.date, lane.timezone, openedAt), word);
  const worse = STANDING_OF[word] ?? lane.standing;
  // Another run than the one the lane speaks of: whether it is the worse one is for the controller to say.
  if (!known && lane.current !== null && lane.current !== undefined && event.type !== "TRIGGER_STARTED") {
    return { ...lane, cells };
  }
  const attempt = typeof event.detail?.["attempt"] === "number" ? event.detail["attempt"] : 0;
  const current: Current = {
    schedule: event.scheduleId,
    date: event.date,
    word,
    attempt: attempt || (known ? (lane.current?.attempt ?? 0) : 0),
    openedAt,
    since: event.timestamp,
    summary: event.message,
  };
  const sla = known ? lane.sla : null;
  return { ...lane, cells, current, sla: sla ?? null, standing: standing(worse, word, sla?.state) };
}

function standing(own: Standing, word: string, sla: string | undefined): Standing {
  if (word === "done") return own;
  return sla === "breached" || sla === "at-risk" ? sla : own;
}

function placed(lane: Lane, index: number | null, word: string): string {
  const letter = LETTER_OF[word];
  if (index === null || letter === undefined || (lane.multiple[String(index)] ?? 1) > 1) return lane.cells;
  return lane.cells.slice(0, index) + letter + lane.cells.slice(index + 1);
}

function withAlert(lane: Lane, event: EventView, alert: "w" | "b", columns: Columns): Lane {
  const known = isCurrent(lane, event);
  const openedAt = known ? (lane.current?.openedAt ?? null) : null;
  const index = columnOfRun(columns, event.date, lane.timezone, openedAt);
  const before = lane.marks === "" ? "-".repeat(lane.cells.length) : lane.marks;
  const marks =
    index === null || before[index] === "b" ? before : before.slice(0, index) + alert + before.slice(index + 1);
  const state = alert === "b" ? "breached" : "at-risk";
  if (!known || lane.current?.word === "done") return { ...lane, marks };
  const sla = { ...lane.sla, state } as NonNullable<Lane["sla"]>;
  return { ...lane, marks, sla, standing: state };
}

function withVerdict(lane: Lane, event: EventView): Lane {
  if (!isCurrent(lane, event) || lane.sla === null || lane.sla === undefined) return lane;
  return { ...lane, sla: { ...lane.sla, state: event.type === "SLA_MET" ? "met" : "recovered" } };
}
