import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";
import { whyQuery } from "./queries";
import { WhySections } from "./WhySections";

/** One run: why it stands as it does, first. */
export function RunPage() {
  const key = useParams({ from: "/pipelines/$pipeline/runs/$schedule/$date" });
  const why = useQuery(whyQuery(key));
  return (
    <article className="run page">
      <h1>
        <Text>{`${key.pipeline} / ${key.schedule} / ${key.date}`}</Text>
      </h1>
      {why.isPending && <Loading what="the run" />}
      {why.error !== null && <Failure error={why.error} retry={() => void why.refetch()} />}
      {why.data !== undefined && <WhySections why={why.data} />}
    </article>
  );
}
