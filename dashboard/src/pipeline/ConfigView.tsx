import type { Schemas } from "../api/client";
import { JsonText } from "../parts/JsonText";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";

/** The config as the API shows it: what looks like a secret is hidden. Every error of an invalid one. */
export function ConfigView({ pipeline, timezone }: { pipeline: Schemas["PipelineDetail"]; timezone: string }) {
  return (
    <section className="config">
      <h2>Config</h2>
      <p className="muted">
        Version <code>{pipeline.version}</code>
        {typeof pipeline.firstAppliedAt === "string" && (
          <>
            , first applied <Time at={pipeline.firstAppliedAt} zone={timezone} />
          </>
        )}
      </p>
      {pipeline.errors.length > 0 && (
        <ul className="marked problem">
          {pipeline.errors.map((error) => (
            <li key={error} data-mark="fail">
              <Text>{error}</Text>
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>Document</summary>
        <JsonText value={pipeline.document} />
      </details>
    </section>
  );
}
