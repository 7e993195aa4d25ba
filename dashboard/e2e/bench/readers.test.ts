// What a hundred readers of the stream cost those who write sensors.
import { tmpdir } from "node:os";

import { it } from "vitest";

import { Controller } from "../server";
import { record } from "./figures";

interface Measured {
  readers: number;
  ofWithout: { events: number; sensors: number };
  goalOfWithout: number;
  processorMicrosecondsPerWrite: { none: number; events: number; sensors: number };
}

it("costs writers little", () => {
  const found = JSON.parse(new Controller(tmpdir()).run("bench.readers")) as Measured;
  const cost = found.processorMicrosecondsPerWrite;
  const goal = found.goalOfWithout * 100;
  const size = `${found.readers} readers`;
  record({ what: "sensor writes/s, of those without readers", size, value: found.ofWithout.events * 100, unit: "%", goal, more_is_better: true });
  record({ what: "sensor writes/s, of those without readers", size: `${size} with sensors`, value: found.ofWithout.sensors * 100, unit: "%" });
  record({ what: "processor time of a sensor write", size: "no reader", value: cost.none, unit: "us" });
  record({ what: "processor time of a sensor write", size, value: cost.events, unit: "us" });
  record({ what: "processor time of a sensor write", size: `${size} with sensors`, value: cost.sensors, unit: "us" });
}, 300_000);
