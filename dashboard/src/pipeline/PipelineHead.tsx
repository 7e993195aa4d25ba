import { Link } from "@tanstack/react-router";

import { ActionButton } from "../actions/ActionButton";
import { SensorDialog } from "../actions/SensorDialog";
import type { Schemas } from "../api/client";
import { Text } from "../parts/Text";
import { schedulesOf } from "./zone";

/** Who owns it, what opens its runs, what it runs after. */
export function PipelineHead({ pipeline }: { pipeline: Schemas["PipelineDetail"] }) {
  const opens = schedulesOf(pipeline.document);
  return (
    <header className="pipe-head">
      <h1>
        <Text>{pipeline.id}</Text>
        {pipeline.dryRun && <span className="tag">dry run</span>}
        {!pipeline.valid && <span className="tag bad">invalid</span>}
      </h1>
      <p className="muted">
        <Text>{[pipeline.owner, ...opens, pipeline.jobType ?? ""].filter(Boolean).join(" · ")}</Text>
        {pipeline.after.map((upstream) => (
          <span key={upstream}>
            {" · after "}
            <Link to="/pipelines/$pipeline" params={{ pipeline: upstream }}>
              <Text>{upstream}</Text>
            </Link>
          </span>
        ))}
      </p>
      {pipeline.description !== "" && (
        <p>
          <Text>{pipeline.description}</Text>
        </p>
      )}
      <div className="actions">
        <ActionButton scope="sensor:write" dialog={(close) => <SensorDialog pipeline={pipeline.id} keys={pipeline.reads} onClose={close} />}>
          Set sensor…
        </ActionButton>
        <Link to="/graph" search={{ root: pipeline.id }} className="button">
          Graph
        </Link>
        <Link to="/hazards" search={{ pipeline: pipeline.id }} className="button">
          Hazards
        </Link>
        <Link to="/events" search={{ pipeline: pipeline.id }} className="button">
          Events
        </Link>
      </div>
    </header>
  );
}
