// The controller's time. The browser's clock is never asked: it may be hours off, and a demo's hour takes half a minute.

export interface Reading {
  /** The controller's time, in epoch milliseconds. */
  at: number;
  /** How many of its seconds pass in one of the world's. */
  rate: number;
  /** When this was read, on the monotonic clock of the page. */
  taken: number;
}

/** The controller's time at a monotonic instant. */
export function timeAt(reading: Reading, monotonic: number): number {
  return reading.at + Math.max(monotonic - reading.taken, 0) * reading.rate;
}

/** `2026-03-03T10:42:00.123Z;rate=60`, as answers and beats of the stream say it. */
export function parseTime(text: string | null | undefined): { at: number; rate: number } | null {
  const [instant, rate] = (text ?? "").trim().split(";rate=");
  const at = Date.parse(instant ?? "");
  const speed = Number(rate);
  return Number.isFinite(at) && Number.isFinite(speed) && speed > 0 ? { at, rate: speed } : null;
}

export class Clock {
  private reading: Reading | null = null;

  constructor(private readonly monotonic: () => number = () => performance.now()) {}

  /** Did anybody tell the time yet? */
  get known(): boolean {
    return this.reading !== null;
  }

  get rate(): number {
    return this.reading?.rate ?? 1;
  }

  now(): number {
    return this.reading === null ? 0 : timeAt(this.reading, this.monotonic());
  }

  /** An answer or a beat says what time it is, and how fast it passes. */
  sync(told: { at: number; rate: number } | null): void {
    if (told !== null) this.reading = { ...told, taken: this.monotonic() };
  }

  /** An event happened at that time: it is at least as late. Events of the past, read again, say nothing new. */
  atLeast(at: number): void {
    if (this.reading !== null && Number.isFinite(at) && at > this.now()) {
      this.reading = { at, rate: this.reading.rate, taken: this.monotonic() };
    }
  }
}

export const clock = new Clock();
