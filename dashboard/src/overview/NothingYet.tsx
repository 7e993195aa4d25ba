import { useLimits } from "../api/session";
import { Text } from "../parts/Text";

interface Props {
  filtered: boolean;
  onClear: () => void;
}

/** No lanes: because of the filter, or because nothing was applied yet. */
export function NothingYet({ filtered, onClear }: Props) {
  const limits = useLimits();
  if (filtered) {
    return (
      <div className="state">
        <h2>No pipeline matches</h2>
        <button type="button" onClick={onClear}>
          Clear the filters
        </button>
      </div>
    );
  }
  if (limits !== null) {
    return (
      <div className="state">
        <h2>No pipeline that your token shows</h2>
        <p>
          It is limited to <Text>{limits}</Text>.
        </p>
      </div>
    );
  }
  return (
    <div className="state">
      <h2>No pipelines yet</h2>
      <p>Three commands to begin with:</p>
      <ol>
        <li>
          <code>interlock init my-pipelines</code>
        </li>
        <li>
          <code>interlock validate my-pipelines</code>
        </li>
        <li>
          <code>interlock apply my-pipelines/pipelines</code>
        </li>
      </ol>
    </div>
  );
}
