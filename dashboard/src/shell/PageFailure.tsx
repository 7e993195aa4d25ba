import { Failure } from "../parts/Failure";

/** A page that cannot be shown: a part of it is missing, or it failed. */
export function PageFailure({ error }: { error: unknown }) {
  return <Failure error={error} retry={() => window.location.reload()} />;
}
