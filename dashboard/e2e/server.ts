// A real `interlock serve` in a folder of its own.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");
export const PYTHON = process.env["PYTHON_BIN"] ?? join(ROOT, ".venv/bin/python");
const WAIT = 30_000;

/** Wait until something is so. */
export async function until<T>(look: () => Promise<T | null | undefined | false> | T | null | undefined | false, what: string, wait = WAIT): Promise<T> {
  const end = performance.now() + wait;
  let last = "";
  while (performance.now() < end) {
    try {
      const found = await look();
      if (found !== null && found !== undefined && found !== false) return found;
    } catch (error) {
      last = `: ${error instanceof Error ? error.message : "unknown"}`;
    }
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error(`${what} did not happen within ${wait / 1000} s${last}`);
}

export async function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const probe = createServer();
    probe.once("error", failed);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => (typeof address === "object" && address !== null ? done(address.port) : failed(new Error("no port"))));
    });
  });
}

export class Controller {
  readonly folder: string;
  port = 0;
  token = "";
  /** Where `interlock` is imported from, if not from the checkout. */
  packages = "";
  private process: ChildProcess | null = null;

  constructor(folder?: string) {
    this.folder = folder ?? mkdtempSync(join(tmpdir(), "interlock-page-"));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The pipelines of the folder, by their documents. */
  pipelines(documents: readonly Record<string, unknown>[]): this {
    mkdirSync(join(this.folder, "pipelines"), { recursive: true });
    for (const document of documents) {
      const { id } = document["pipeline"] as { id: string };
      writeFileSync(join(this.folder, "pipelines", `${id}.json`), JSON.stringify(document));
    }
    return this;
  }

  run(...arguments_: string[]): string {
    const done = spawnSync(PYTHON, ["-m", ...arguments_], { cwd: this.folder, encoding: "utf-8", env: this.environment() });
    if (done.status !== 0) throw new Error(`${arguments_.join(" ")} failed: ${done.stderr}`);
    return done.stdout.trim();
  }

  environment(): NodeJS.ProcessEnv {
    const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("INTERLOCK_"));
    return { ...Object.fromEntries(clean), PYTHONPATH: this.packages === "" ? ROOT : `${this.packages}:${ROOT}` };
  }

  async start(...arguments_: string[]): Promise<this> {
    if (this.port === 0) this.port = await freePort();
    const log = join(this.folder, "log.txt");
    this.process = spawn(
      "/bin/sh",
      ["-c", `exec "$0" -m interlock serve --port ${this.port} ${arguments_.join(" ")} >>"${log}" 2>&1`, PYTHON],
      { cwd: this.folder, env: this.environment() },
    );
    await until(async () => {
      if (this.process?.exitCode !== null) throw new Error(`serve ended: ${readFileSync(log, "utf-8")}`);
      return (await fetch(`${this.url}/readyz`)).ok;
    }, "the start of serve");
    return this;
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const process_ = this.process;
    if (process_ === null || process_.exitCode !== null) return;
    const ended = new Promise((done) => process_.once("exit", done));
    process_.kill(signal);
    await ended;
    this.process = null;
  }

  /** Stop it and remove its folder. */
  async end(): Promise<void> {
    await this.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A token of these scopes; from the first on the controller asks for one. */
  createToken(name: string, ...scopes: string[]): string {
    const options = scopes.flatMap((scope) => ["--scope", scope]);
    return this.run("interlock", "token", "create", "--name", name, ...options);
  }

  async api(method: string, path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.token !== "") headers["Authorization"] = `Bearer ${this.token}`;
    return fetch(`${this.url}/api/v1/${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async sensor(pipeline: string, key: string, data: Record<string, unknown>): Promise<void> {
    const answer = await this.api("PUT", `pipelines/${pipeline}/sensors/${encodeURIComponent(key)}`, data);
    if (!answer.ok) throw new Error(await answer.text());
  }
}
