// What the tabs of a browser tell each other, so that one connection serves them all.
import type { SensorNotice, Told } from "./stream";

export type Phase = "connecting" | "live" | "lost";

export interface Status {
  phase: Phase;
  /** The controller's time at which the connection was lost. */
  lostAt: number | null;
  /** Epoch milliseconds of the browser at which the next try is made: for counting down only. */
  retryIn: number | null;
}

export type Message =
  | { kind: "hello" }
  | { kind: "want" }
  | { kind: "sensors"; pipelines: readonly string[]; tab: string }
  | { kind: "sensor-gap" }
  | { kind: "status"; status: Status; position: string | null }
  | { kind: "told"; told: Told[]; sensors: SensorNotice[] }
  | { kind: "gap" }
  | { kind: "signed-out" };
