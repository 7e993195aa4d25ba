// Live events for a whole browser. The tab that holds a Web Lock reads the stream and tells the others; six open streams
// would block a seventh tab. Only visible tabs ask for the lock, and a hidden tab gives it up to a visible one. Hidden
// tabs draw nothing: when they are seen again, what they show is read again.
import { signedOut } from "../api/client";
import { clock } from "../time/clock";
import { pause } from "./backoff";
import type { Message, Status } from "./messages";
import { readStream, type EventView, type SensorNotice, type Told } from "./stream";

const NAME = "interlock-live";
/** Longer without a connection: what happened meanwhile is not replayed but read again. */
const LONG_GAP = 5 * 60_000;
/** How long the first connection waits for the position of what is shown. */
const FIRST_POSITION = 400;
/** A hidden tab that does not give up the lock within this time is frozen: it is taken from it. */
const STEAL_AFTER = 3000;
/** A stream that was open for this long is taken up again at once when the controller ends it. */
const SETTLED = 1000;
const REMEMBERED = 4000;
/** How long a change of the sensors that are shown is waited out. */
const COVER = 100;
/** A stream tells of the sensors of so many pipelines at most. */
const MOST_PIPELINES = 50;

export interface Batch {
  told: Told[];
  sensors: SensorNotice[];
}

type Listener<T> = (value: T) => void;

/** The number of a position. */
export function seqOf(position: string): number {
  return Number(position.split("-")[0] ?? 0);
}

export class Hub {
  private status: Status = { phase: "connecting", lostAt: null, retryIn: null };
  private readonly statusListeners = new Set<() => void>();
  private readonly batchListeners = new Set<Listener<Batch>>();
  private readonly gapListeners = new Set<Listener<number>>();
  private readonly seen = new Set<string>();
  private readonly sensorGapListeners = new Set<() => void>();
  /** The pipelines whose sensors are shown, by tab. */
  private readonly shownSensors = new Map<string, readonly string[]>();
  /** Those that the open stream tells of. */
  private heardSensors: readonly string[] = [];
  private readonly tab = crypto.randomUUID();
  private channel: BroadcastChannel | null = null;
  private position: string | null = null;
  /** The number that a stream without a position to go on from began at: what came before it was not heard. */
  private began: number | null = null;
  private offered: (() => void) | null = null;
  private buffer: Batch = { told: [], sensors: [] };
  private drawing = false;
  private missed = false;
  private leading: AbortController | null = null;
  private competing: AbortController | null = null;
  private retry: (() => void) | null = null;
  private lostSince: number | null = null;
  private stopped = new AbortController();

  // ------------------------------------------------------------------------------------------------------ listening

  readonly subscribe = (listener: () => void): (() => void) => {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  };

  readonly snapshot = (): Status => this.status;

  /** Be told of events, at most once a frame. */
  onBatch(listener: Listener<Batch>): () => void {
    this.batchListeners.add(listener);
    return () => this.batchListeners.delete(listener);
  }

  /** Be told that something may have been missed: what was read before this number is to be read again. */
  onGap(listener: Listener<number>): () => void {
    this.gapListeners.add(listener);
    return () => this.gapListeners.delete(listener);
  }

  /** What is shown was read at this position: a stream that was not begun yet begins here. */
  offer(position: string): void {
    if (this.position === null) {
      this.position = position;
      this.offered?.();
    } else if (this.began !== null && seqOf(position) < this.began) {
      this.tellGap();
    }
  }

  /** Be told that sensors may have been written unheard: they are not replayed, but read again. */
  onSensorGap(listener: () => void): () => void {
    this.sensorGapListeners.add(listener);
    return () => this.sensorGapListeners.delete(listener);
  }

  /** This tab shows what sensors of these pipelines say. */
  wantSensors(pipelines: readonly string[]): void {
    this.shownSensors.set(this.tab, pipelines);
    this.post({ kind: "sensors", pipelines, tab: this.tab });
    this.coverSensors();
  }

  /** Try again now. */
  retryNow(): void {
    this.retry?.();
  }

  // --------------------------------------------------------------------------------------------------------- living

  start(): void {
    this.stopped = new AbortController();
    this.channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(NAME);
    this.channel?.addEventListener("message", (message: MessageEvent<Message>) => {
      this.heard(message.data);
    });
    document.addEventListener("visibilitychange", this.seenOrHidden, { signal: this.stopped.signal });
    window.addEventListener("pagehide", () => this.post({ kind: "sensors", pipelines: [], tab: this.tab }), { signal: this.stopped.signal });
    this.post({ kind: "hello" });
    if (!document.hidden) this.compete();
  }

  stop(): void {
    this.stopped.abort();
    this.competing?.abort();
    this.leading?.abort();
    this.channel?.close();
    this.channel = null;
    this.position = null;
    this.began = null;
    this.seen.clear();
    this.set({ phase: "connecting", lostAt: null, retryIn: null });
  }

  private readonly seenOrHidden = (): void => {
    if (document.hidden) {
      if (this.leading === null) this.competing?.abort();
      return;
    }
    if (this.missed) {
      this.missed = false;
      this.tellGap();
    }
    if (this.leading === null) {
      this.post({ kind: "want" });
      this.compete();
    }
  };

  private compete(): void {
    const locks = (navigator as { locks?: LockManager }).locks;
    if (locks === undefined) {
      // Without a secure context there are no locks: every tab reads for itself.
      if (this.leading === null) void this.lead();
      return;
    }
    this.competing?.abort();
    const competing = new AbortController();
    this.competing = competing;
    locks.request(NAME, { signal: competing.signal }, () => this.lead()).catch(() => undefined);
    setTimeout(() => void this.stealFromFrozen(locks, competing), STEAL_AFTER);
  }

  private async stealFromFrozen(locks: LockManager, competing: AbortController): Promise<void> {
    const unheard = this.status.phase === "connecting" && this.leading === null && !document.hidden;
    if (!unheard || competing.signal.aborted || this.stopped.signal.aborted) return;
    competing.abort();
    await locks.request(NAME, { steal: true }, () => this.lead()).catch(() => {
      this.leading?.abort(); // it was taken from us in turn
    });
  }

  // -------------------------------------------------------------------------------------------------------- reading

  /** Read the stream until this tab is told to stop: by its end, or by a visible tab that wants to. */
  private async lead(): Promise<void> {
    if (this.stopped.signal.aborted) return;
    const leading = new AbortController();
    this.leading = leading;
    if (this.position === null) await this.firstPosition(leading.signal);
    const over = () => leading.signal.aborted;
    for (let tries = 0; !over(); ) {
      let openedAt = Infinity;
      const ending = await this.connect(leading.signal, () => {
        tries = 0;
        openedAt = performance.now();
      });
      if (over()) break;
      if (ending === "signed-out") {
        this.post({ kind: "signed-out" });
        signedOut();
        break;
      }
      // The controller ended it, perhaps since the session is over: that is asked at once, but not again and again.
      if (ending === "closed" && performance.now() - openedAt > SETTLED) continue;
      tries += 1;
      await this.wait(pause(tries), leading.signal);
    }
    if (this.leading === leading) this.leading = null;
  }

  private async firstPosition(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, FIRST_POSITION);
      this.offered = () => {
        clearTimeout(timer);
        resolve();
      };
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.offered = null;
  }

  private async connect(signal: AbortSignal, onOpened: () => void): Promise<string> {
    const long = this.lostSince !== null && performance.now() - this.lostSince > LONG_GAP;
    if (long) this.position = null;
    const blind = this.position === null;
    const current = new AbortController();
    const sensors = this.sensors;
    this.reconnect = current;
    this.heardSensors = sensors;
    return readStream(
      { position: this.position, sensors, signal: AbortSignal.any([signal, current.signal]) },
      {
        opened: (position) => {
          if (position !== null && this.position === null) this.position = position;
          this.began = blind && position !== null ? seqOf(position) : null;
          this.lostSince = null;
          onOpened();
          this.openedLive(blind);
          if (sensors.length > 0 && !blind) this.tellSensorGap();
        },
        told: (told) => {
          this.take([told], []);
        },
        sensor: (notice) => {
          this.take([], [notice]);
        },
      },
    );
  }

  /** The stream is open: say so. Without a position to go on from, something may have been missed. */
  private openedLive(blind: boolean): void {
    this.set({ phase: "live", lostAt: null, retryIn: null });
    if (blind) {
      this.post({ kind: "gap" });
      this.tellGap();
    }
  }

  private reconnect: AbortController | null = null;

  private get sensors(): readonly string[] {
    return [...new Set([...this.shownSensors.values()].flat())].sort().slice(0, MOST_PIPELINES);
  }

  /**
   * Sensors are part of the stream while a tab shows them: the connection is made anew, from where it is. Not at once,
   * as who goes from one page to the next wants none for a moment; and not to hear of fewer.
   */
  private coverSensors(): void {
    clearTimeout(this.covering);
    this.covering = setTimeout(() => {
      const covered = this.sensors.every((pipeline) => this.heardSensors.includes(pipeline));
      if (this.leading !== null && !covered) this.reconnect?.abort();
    }, COVER);
  }

  private covering: ReturnType<typeof setTimeout> | undefined;

  private async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (this.reconnect?.signal.aborted === true) return; // ended on purpose
    this.lostSince ??= performance.now();
    const lostAt = this.status.phase === "lost" ? this.status.lostAt : clock.now();
    this.set({ phase: "lost", lostAt, retryIn: milliseconds });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.retry = () => {
        clearTimeout(timer);
        resolve();
      };
      signal.addEventListener("abort", this.retry);
    });
    this.retry = null;
  }

  // ------------------------------------------------------------------------------------------------------ telling

  private take(told: Told[], sensors: SensorNotice[]): void {
    this.post({ kind: "told", told, sensors });
    this.show(told, sensors);
  }

  /** Repeats are dropped; the rest is drawn with the next frame, or not at all in a hidden tab. */
  private show(told: Told[], sensors: SensorNotice[]): void {
    const fresh = told.filter((one) => this.isNew(one.event));
    const last = told[told.length - 1];
    if (last !== undefined && last.position !== "") this.position = last.position;
    for (const one of fresh) clock.atLeast(Date.parse(one.event.timestamp));
    if (document.hidden) {
      this.missed ||= fresh.length > 0 || sensors.length > 0;
      return;
    }
    this.buffer.told.push(...fresh);
    this.buffer.sensors.push(...sensors);
    if (!this.drawing && (this.buffer.told.length > 0 || this.buffer.sensors.length > 0)) {
      this.drawing = true;
      requestAnimationFrame(() => {
        this.flush();
      });
    }
  }

  private flush(): void {
    const batch = this.buffer;
    this.buffer = { told: [], sensors: [] };
    this.drawing = false;
    this.batchListeners.forEach((listener) => {
      listener(batch);
    });
  }

  private isNew(event: EventView): boolean {
    if (this.seen.has(event.id)) return false;
    if (this.seen.size >= REMEMBERED) {
      let count = REMEMBERED / 2;
      for (const id of this.seen) {
        if (count-- === 0) break;
        this.seen.delete(id);
      }
    }
    this.seen.add(event.id);
    return true;
  }

  private heard(message: Message): void {
    switch (message.kind) {
      case "hello":
        if (this.leading !== null) this.post({ kind: "status", status: this.status, position: this.position });
        this.postSensors();
        break;
      case "want":
        if (this.leading !== null && document.hidden) this.leading.abort();
        break;
      case "sensors":
        if (message.pipelines.length === 0) this.shownSensors.delete(message.tab);
        else this.shownSensors.set(message.tab, message.pipelines);
        this.coverSensors();
        break;
      case "sensor-gap":
        this.hearSensorGap();
        break;
      case "status":
        if (this.leading === null) {
          this.position ??= message.position;
          this.replace(message.status);
        }
        break;
      case "told":
        if (this.leading === null) this.show(message.told, message.sensors);
        break;
      case "gap":
        this.tellGap();
        break;
      case "signed-out":
        signedOut();
        break;
    }
  }

  private tellGap(): void {
    if (document.hidden) {
      this.missed = true;
      return;
    }
    const since = this.began ?? Number.MAX_SAFE_INTEGER;
    this.gapListeners.forEach((listener) => {
      listener(since);
    });
  }

  private tellSensorGap(): void {
    this.post({ kind: "sensor-gap" });
    this.hearSensorGap();
  }

  private hearSensorGap(): void {
    if (document.hidden) this.missed = true;
    else {
      this.sensorGapListeners.forEach((listener) => {
        listener();
      });
    }
  }

  private postSensors(): void {
    const pipelines = this.shownSensors.get(this.tab) ?? [];
    if (pipelines.length > 0) this.post({ kind: "sensors", pipelines, tab: this.tab });
  }

  private set(status: Status): void {
    this.replace(status);
    this.post({ kind: "status", status, position: this.position });
  }

  private replace(status: Status): void {
    this.status = status;
    this.statusListeners.forEach((listener) => {
      listener();
    });
  }

  private post(message: Message): void {
    this.channel?.postMessage(message);
  }
}

export const hub = new Hub();
