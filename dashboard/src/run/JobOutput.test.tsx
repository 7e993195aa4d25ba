// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { JobOutput } from "./JobOutput";

const asked: number[] = [];

vi.mock("../api/output", () => ({
  readOutput: (_pipeline: string, _run: string, offset: number) => {
    asked.push(offset);
    return Promise.resolve({ text: "a line\n", next: 7, complete: false, link: "" });
  },
}));

function hide(hidden: boolean) {
  Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
}

beforeEach(() => {
  vi.useFakeTimers();
  asked.length = 0;
});

afterEach(() => {
  hide(false);
  vi.useRealTimers();
  cleanup();
});

async function pass(seconds: number) {
  await act(() => vi.advanceTimersByTimeAsync(seconds * 1000));
}

it("asks for more while the job runs and somebody looks, and for nothing in a hidden tab", async () => {
  hide(false);
  render(<JobOutput pipeline="gold" runId="r1" attempt={1} running />);
  await pass(10);
  expect(asked).toEqual([]);
  const details = screen.getByText(/Attempt 1/).closest("details") as HTMLDetailsElement;
  details.open = true;
  fireEvent(details, new Event("toggle"));
  await pass(0);
  expect(screen.getByText(/a line/)).toBeTruthy();
  await pass(4);
  const before = asked.length;
  expect(before).toBeGreaterThan(2);
  hide(true);
  await pass(60);
  expect(asked.length).toBe(before);
  hide(false);
  await pass(2);
  expect(asked.length).toBe(before + 1);
});
