/** The zone of a pipeline's first schedule, as its document says it. */
export function zoneOfDocument(document: Record<string, unknown>): string {
  const schedules = Array.isArray(document["schedules"]) ? (document["schedules"] as unknown[]) : [];
  const first = (schedules[0] ?? document["schedule"]) as { timezone?: unknown } | undefined;
  return typeof first?.timezone === "string" ? first.timezone : "UTC";
}
