import { useZone } from "../time/zoneContext";
import { abbreviation } from "../time/zones";
import { columnLabels, columnOfInstant, withNow, type Columns } from "./columns";

/** The hours or days above the cells. Hours are those of the reader's choice; lanes of other zones share them. */
export function ColumnHeads({ columns, at }: { columns: Columns; at: number }) {
  const zone = useZone("UTC");
  const now = columnOfInstant(columns, at);
  const labels = withNow(columnLabels(columns, zone), columns.bucket, now);
  return (
    <div role="rowgroup" className="heads">
      <div role="row" aria-rowindex={1} className="row head">
        <div role="columnheader">Pipeline</div>
        <div role="columnheader">State</div>
        <div role="columnheader" aria-colspan={columns.count} className="track labels">
          <span className="spoken">
            {columns.count} {columns.bucket}s, in {columns.bucket === "hour" ? abbreviation(at, zone) : "days"}
          </span>
          {labels.map((label, index) => (
            <span key={index} aria-hidden="true" data-now={index === now || undefined}>
              {label}
            </span>
          ))}
        </div>
        <div role="columnheader">SLA</div>
        <div role="columnheader">Next</div>
      </div>
    </div>
  );
}
