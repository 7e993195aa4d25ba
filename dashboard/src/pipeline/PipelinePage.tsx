import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { useLiveRun } from "../run/useLiveRun";
import { ConfigView } from "./ConfigView";
import { NowLine } from "./NowLine";
import { PipelineHead } from "./PipelineHead";
import { pipelineQuery } from "./queries";
import { SensorTable } from "./SensorTable";
import { TrendSection } from "./TrendSection";
import { UpcomingList } from "./UpcomingList";
import { zoneOfDocument } from "./zone";

/** One pipeline: how it stands, what comes next, how it went, what it reads, and what it is. */
export function PipelinePage() {
  const { pipeline } = useParams({ from: "/pipelines/$pipeline" });
  const detail = useQuery(pipelineQuery(pipeline));
  useLiveRun(pipeline, [["pipeline", pipeline]]);
  if (detail.error !== null && detail.data === undefined) {
    return <Failure error={detail.error} retry={() => void detail.refetch()} />;
  }
  if (detail.data === undefined) return <Loading what="the pipeline" />;
  const timezone = zoneOfDocument(detail.data.document);
  return (
    <article className="pipeline page">
      <PipelineHead pipeline={detail.data} />
      <div className="pair">
        <NowLine pipeline={pipeline} />
        {detail.data.valid && <UpcomingList pipeline={pipeline} timezone={timezone} />}
      </div>
      <TrendSection pipeline={pipeline} timezone={timezone} />
      <SensorTable pipeline={detail.data} timezone={timezone} />
      <ConfigView pipeline={detail.data} timezone={timezone} />
    </article>
  );
}
