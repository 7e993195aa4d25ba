// A real controller on a seeded store, and real events for it.
import { spawn } from "node:child_process";
import { join } from "node:path";

import { Controller, PYTHON } from "../server";

/** A controller of so many pipelines with 90 days behind them. Most are opened by sensors, so that a load can be made. */
export async function seededController(pipelines: number, streamed = 0.9): Promise<Controller> {
  const controller = new Controller();
  controller.run("bench.seeded", join(controller.folder, "interlock.db"), "--pipelines", String(pipelines), "--streamed", String(streamed));
  await controller.start("--log-level", "error");
  return controller;
}

export interface Steady {
  pipelines: number;
  runs: number;
  seconds: number;
  eventsPerSecond: number;
}

/** Events, so many a second, by real runs of periods that have had none. */
export async function load(controller: Controller, events: number, seconds: number): Promise<Steady> {
  const options = ["--events", events, "--seconds", seconds].map(String);
  const process_ = spawn(PYTHON, ["-m", "bench.steady", String(controller.port), ...options], {
    env: controller.environment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  process_.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  const status = await new Promise((done) => process_.once("exit", done));
  if (status !== 0) throw new Error(`bench.steady ended with ${String(status)}`);
  return JSON.parse(out) as Steady;
}
