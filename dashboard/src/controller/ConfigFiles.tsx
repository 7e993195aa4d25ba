import type { Schemas } from "../api/client";
import { LongText } from "../parts/LongText";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";

/** Where configs come from, and the files that cannot be used, with every error. */
export function ConfigFiles({ view }: { view: Schemas["ControllerView"] }) {
  if (view.folders.length + view.invalidFiles.length + view.removed.length === 0) return null;
  return (
    <section>
      <h2>Config files</h2>
      <ul>
        {view.folders.map((one) => (
          <li key={one.folder}>
            <code>
              <Text>{one.folder}</Text>
            </code>
            : {one.pipelines} {one.pipelines === 1 ? "pipeline" : "pipelines"}
            {one.lost !== "" && (
              <span className="problem">
                {" "}
                <Text>{one.lost}</Text>
              </span>
            )}
          </li>
        ))}
        {view.removed.map((one) => (
          <li key={one.pipeline}>
            <Text>{one.pipeline}</Text> was removed; {one.runs.length} of its runs are still under way
          </li>
        ))}
      </ul>
      {view.invalidFiles.map((one) => (
        <div key={one.file} className="problem">
          <p>
            <b>
              <Text>{one.file}</Text>
            </b>{" "}
            cannot be used since <Time at={one.since} zone="UTC" />
            {one.inForce === "" ? ": nothing of it is run." : `; version ${one.inForce} goes on.`}
          </p>
          <ul>
            {one.errors.map((error) => (
              <li key={error}>
                <LongText>{error}</LongText>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}
