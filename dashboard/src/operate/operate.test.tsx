// @vitest-environment jsdom
// What can be done by hand: each action sends once, shows the controller's answer word for word, and its refusal.
import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { answers, controller, json, never, pathOf, problem, show } from "../testing";

const LANE = { id: "gold", owner: "", timezone: "UTC", valid: true, errors: [], dryRun: false, schedules: ["cron"], after: [], standing: "done", cells: "d", marks: "", multiple: {}, current: null, sla: null, nextRun: null };
const LANES = { at: "2026-03-03T10:00:00Z", rate: 1, bucket: "day", from: "", to: "", position: "1-1", total: 1, counts: {}, owners: [], items: [LANE], next: null };
const PREVIEW = { decision: "accepted", reason: "manual rerun 1 of 3", budgets: { manual: { used: 0, of: 3 } }, downstream: [{ pipeline: "report", effect: "would run again" }] };
const RUN = { word: "waiting" };
const LETTER = { id: 7, source: "event-sink", kind: "event", lastAt: "2026-03-03T09:00:00Z", tries: 5, error: "no such table", record: { a: 1 } };
const TOKEN = { id: "t1", name: "airflow", scopes: ["read"], pipelines: ["gold"], owners: ["finance"], networks: [], createdAt: "2026-03-01T00:00:00Z", expiresAt: null, usedAt: null, revokedAt: null, local: false };

/** Each action: its button, what is filled in, the button that sends, the request, the answer, and how it is shown. */
const ACTIONS: [string, Record<string, string>, string, string, unknown, RegExp][] = [
  ["Set sensor…", { Key: "rows", Fields: "count=5" }, "Write it", "PUT pipelines/gold/sensors/rows", { pipeline: "gold", key: "rows", period: "" }, /"key": "rows"/],
  ["Report outcome…", {}, "Report", "POST pipelines/gold/jobs", { event: "success", attempt: 2 }, /recorded: success of attempt 2/],
  ["Rerun…", { Reason: "a correction" }, "Request the rerun", "POST pipelines/gold/reruns", { decision: "rejected", reason: "nothing has changed" }, /rejected: nothing has changed/],
  ["Cancel…", { Reason: "not today" }, "Cancel the run", "POST pipelines/gold/runs/cron/2026-03-03:cancel", { outcome: "cancelled" }, /^cancelled$/],
  ["Run it now…", {}, "Run it", "POST watchdog/run", { failedChecks: ["stale-sensors"] }, /failed checks: stale-sensors/],
  ["Redrive all…", {}, "Redrive all", "POST dlq/redrive", { redriven: 1 }, /1 redriven/],
  ["Make a token…", { "For whom": "dbt" }, "Make it", "POST tokens", { token: "ilk_new" }, /ilk_new/],
  ["Rotate…", {}, "Rotate it", "POST tokens/airflow:rotate", { token: "ilk_second" }, /ilk_second/],
  ["Revoke…", {}, "Revoke it", "DELETE tokens/airflow", { name: "airflow" }, /revoked: airflow/],
];

const READ = { overview: LANES, dlq: { items: [LETTER], next: null }, tokens: { items: [TOKEN] }, "pipelines/gold/reruns:preview": PREVIEW, "pipelines/gold/runs/cron/2026-03-03": RUN };

/** The dialog of an action, filled in; the request it makes is answered by `sent`. */
async function opened(button: string, fields: Record<string, string>, request: string, sent: () => Response | Promise<Response>): Promise<HTMLElement> {
  const read = answers(READ);
  controller.answer = (url, init) => {
    const called = `${init.method} ${pathOf(url)}`;
    return called === request ? sent() : read(url, init);
  };
  await show("/operate");
  fireEvent.change(await screen.findByRole("combobox", { name: "Pipeline" }), { target: { value: "gold" } });
  fireEvent.change(screen.getByLabelText("Schedule"), { target: { value: "cron" } });
  fireEvent.change(screen.getByLabelText("Period"), { target: { value: "2026-03-03" } });
  await waitFor(() => expect(screen.getByRole<HTMLButtonElement>("button", { name: button }).disabled).toBe(false));
  fireEvent.click(screen.getByRole("button", { name: button }));
  const [dialog] = [...document.querySelectorAll<HTMLDialogElement>("main dialog")];
  if (dialog === undefined) throw new Error(`${button} opens nothing`);
  for (const [label, value] of Object.entries(fields)) fireEvent.change(within(dialog).getByLabelText(label), { target: { value } });
  return dialog;
}

async function send(dialog: HTMLElement, verb: string): Promise<void> {
  await waitFor(() => expect(within(dialog).getByRole<HTMLButtonElement>("button", { name: verb }).disabled).toBe(false));
  fireEvent.click(within(dialog).getByRole("button", { name: verb }));
}

beforeEach(() => {
  controller.asked.length = 0;
});

afterEach(cleanup);

describe.each(ACTIONS)("%s", (button, fields, verb, request, answer, said) => {
  it("sends once, and shows the answer word for word", async () => {
    const dialog = await opened(button, fields, request, () => json(answer));
    await send(dialog, verb);
    await waitFor(() => expect(dialog.querySelector(".answer")?.textContent).toMatch(said));
    expect(within(dialog).queryByRole("button", { name: verb })).toBeNull();
    expect(controller.asked.filter((one) => one === request)).toHaveLength(1);
  });

  it("shows a refusal with its request, and may be sent again", async () => {
    const dialog = await opened(button, fields, request, () => problem(409, "it was changed meanwhile"));
    await send(dialog, verb);
    await waitFor(() => expect(within(dialog).getByRole("alert").textContent).toContain("it was changed meanwhile"));
    expect(dialog.textContent).toContain("Request req-17");
    await send(dialog, verb);
    await waitFor(() => expect(controller.asked.filter((one) => one === request)).toHaveLength(2));
  });

  it("cannot be sent twice while it is under way", async () => {
    const dialog = await opened(button, fields, request, () => never());
    await send(dialog, verb);
    const sending = await within(dialog).findByRole("button", { name: "Sending…" });
    expect((sending as HTMLButtonElement).disabled).toBe(true);
    fireEvent.submit(dialog.querySelector("form") as HTMLFormElement);
    expect(controller.asked.filter((one) => one === request)).toHaveLength(1);
  });
});

it("a rerun states what would be decided, what is left of the budgets, and who would feel it", async () => {
  const dialog = await opened("Rerun…", {}, "", () => never());
  await within(dialog).findByText("accepted");
  expect(dialog.textContent).toContain("manual rerun 1 of 3");
  expect(dialog.textContent).toContain("manual reruns: 0 of 3 used");
  expect(dialog.textContent).toContain("report: would run again");
  expect(dialog.textContent).toContain("gold / cron / 2026-03-03");
});

it("dead letters and tokens are shown whole", async () => {
  controller.answer = answers(READ);
  await show("/operate");
  const letter = await screen.findByRole("row", { name: /event-sink/ });
  expect(letter.textContent).toContain("no such table");
  const token = await screen.findByRole("row", { name: /airflow/ });
  expect(token.textContent).toContain("gold, owner finance");
  expect(token.textContent).toContain("never");
});
