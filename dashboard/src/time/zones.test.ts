import { describe, expect, it } from "vitest";

import { periodStart } from "./periods";
import { distance, duration, span } from "./spans";
import { abbreviation, dateOf, formatNear, formatTime, inAllZones, zoneOf } from "./zones";

const at = (text: string) => Date.parse(text);

describe("times in zones", () => {
  it("names the zone, also across a change of the clocks", () => {
    const now = at("2026-03-08T12:00:00Z");
    expect(formatTime(at("2026-03-08T06:59:00Z"), "America/New_York", now)).toBe("01:59 EST");
    expect(formatTime(at("2026-03-08T07:00:00Z"), "America/New_York", now)).toBe("03:00 EDT");
    expect(formatTime(at("2026-10-25T00:30:00Z"), "Europe/Berlin", at("2026-10-25T12:00:00Z"))).toBe("02:30 CEST");
    expect(formatTime(at("2026-10-25T01:30:00Z"), "Europe/Berlin", at("2026-10-25T12:00:00Z"))).toBe("02:30 CET");
  });

  it("says the date where it is not today's, in that zone", () => {
    const now = at("2026-03-03T01:00:00Z");
    expect(formatTime(at("2026-03-02T23:00:00Z"), "UTC", now)).toBe("2026-03-02 23:00 UTC");
    expect(formatTime(at("2026-03-02T23:00:00Z"), "Asia/Kolkata", now)).toBe("04:30 IST");
    expect(formatNear(at("2026-03-04T13:00:00Z"), "America/New_York", now)).toBe("Wed 08:00 EST");
    expect(formatNear(at("2026-03-24T12:00:00Z"), "America/New_York", now)).toBe("2026-03-24 08:00 EDT");
  });

  it("has a short name for zones that only others name", () => {
    expect(abbreviation(at("2026-03-03T00:00:00Z"), "Europe/Berlin")).toBe("CET");
    expect(abbreviation(at("2026-03-03T00:00:00Z"), "Etc/UTC")).toBe("UTC");
    expect(abbreviation(at("2026-03-03T00:00:00Z"), "America/Sao_Paulo")).toMatch(/^(UTC-3|BRT)$/);
  });

  it("gives all zones of an instant, and falls back where the browser does not know one", () => {
    expect(inAllZones(at("2026-03-03T10:00:00Z"), "America/New_York")).toContain("2026-03-03 05:00:00 EST");
    expect(dateOf(at("2026-03-03T10:00:00Z"), "Mars/Olympus")).toBe("2026-03-03");
    expect(zoneOf("pipeline", undefined)).toBe("UTC");
    expect(zoneOf("utc", "America/New_York")).toBe("UTC");
  });
});

describe("where a period begins", () => {
  it.each([
    ["2026-03-03", "UTC", "2026-03-03T00:00:00Z"],
    ["2026-03-03T10", "America/New_York", "2026-03-03T15:00:00Z"],
    ["2026-03-03T1015", "Asia/Kolkata", "2026-03-03T04:45:00Z"],
    // The clocks skip 02:00 to 03:00: the first moment after.
    ["2026-03-08T02", "America/New_York", "2026-03-08T07:00:00Z"],
    // They show 01:00 twice: the earlier.
    ["2026-11-01T01", "America/New_York", "2026-11-01T05:00:00Z"],
    ["2026-10-25T02", "Europe/Berlin", "2026-10-25T00:00:00Z"],
    ["2026-04-05T02", "Australia/Lord_Howe", "2026-04-04T15:30:00Z"],
  ])("%s in %s", (period, zone, instant) => {
    expect(new Date(periodStart(period, zone) ?? 0).toISOString()).toBe(instant.replace("Z", ".000Z"));
  });

  it("is nowhere for what is no period", () => {
    expect(periodStart("yesterday", "UTC")).toBeNull();
  });
});

describe("lengths of time", () => {
  it.each([
    [0, "0s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [3_599_999, "59m"],
    [3_840_000, "1h04m"],
    [7_200_000, "2h"],
    [90_000_000, "1d 1h"],
    [-3_840_000, "1h04m"],
  ])("%i ms", (milliseconds, shown) => {
    expect(span(milliseconds)).toBe(shown);
  });

  it("says which way", () => {
    expect(distance(10_000, 0)).toBe("in 10s");
    expect(distance(0, 180_000)).toBe("3m ago");
    expect(distance(500, 0)).toBe("now");
    expect(duration(250)).toBe("4m 10s");
    expect(duration(8.25)).toBe("8.3s");
  });
});
