import { ApiError, UnreachableError } from "../api/problem";
import { Text } from "./Text";

function title(error: unknown): string {
  if (error instanceof UnreachableError) return "The controller does not answer";
  if (!(error instanceof ApiError)) return "The page failed";
  if (error.status === 403) return "Not allowed";
  if (error.status === 404) return "Not found";
  if (error.status === 422) return "The controller does not take this";
  return "The controller could not answer";
}

/** What went wrong, in the controller's words, with the request's id for its log, and a way to try again. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const detail = error instanceof Error ? error.message : String(error);
  return (
    <div className="state problem" role="alert">
      <h2>{title(error)}</h2>
      <p>
        <Text>{detail}</Text>
      </p>
      {error instanceof ApiError && error.requestId !== "" && <p className="muted">Request {error.requestId}</p>}
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
