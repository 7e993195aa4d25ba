// Errors of the API, as problem documents say them.
import type { components } from "./schema";

export type ProblemDocument = components["schemas"]["Problem"];

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    readonly requestId: string,
    readonly slug: string,
  ) {
    super(detail);
  }
}

/** No answer at all: the controller is down, or the network is. */
export class UnreachableError extends Error {
  constructor() {
    super("the controller does not answer");
  }
}

export function problemOf(response: Response, body: unknown): ApiError {
  const document = (typeof body === "object" && body !== null ? body : {}) as Partial<ProblemDocument>;
  const detail = typeof document.detail === "string" ? document.detail : `the controller answered ${response.status}`;
  const slug = typeof document.type === "string" ? document.type.replace("urn:interlock:problem:", "") : "";
  return new ApiError(response.status, detail, response.headers.get("x-request-id") ?? "", slug);
}
