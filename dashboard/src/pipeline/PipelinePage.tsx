import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";
import { pipelineQuery, runsQuery } from "./queries";
import { RunList } from "./RunList";

/** One pipeline. */
export function PipelinePage() {
  const { pipeline } = useParams({ from: "/pipelines/$pipeline" });
  const detail = useQuery(pipelineQuery(pipeline));
  const runs = useQuery(runsQuery(pipeline));
  return (
    <article className="pipeline page">
      <h1>
        <Text>{pipeline}</Text>
      </h1>
      {detail.isPending && <Loading what="the pipeline" />}
      {detail.error !== null && <Failure error={detail.error} retry={() => void detail.refetch()} />}
      {detail.data !== undefined && (
        <p className="muted">
          <Text>{detail.data.owner}</Text>
        </p>
      )}
      {runs.data !== undefined && <RunList runs={runs.data.items} />}
    </article>
  );
}
