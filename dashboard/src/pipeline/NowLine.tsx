import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";
import { NextLines } from "../run/NextLines";
import { nowQuery } from "./queries";

/** How it stands now, in the words of `why`. */
export function NowLine({ pipeline }: { pipeline: string }) {
  const why = useQuery(nowQuery(pipeline));
  if (why.data === undefined) {
    return why.error === null ? <Loading what="how it stands" /> : <Failure error={why.error} retry={() => void why.refetch()} />;
  }
  const { schedule, date, state, verdict } = why.data;
  return (
    <section className="now">
      <h2>
        Now: <span data-word={state}>{state}</span>
        {date !== "" && (
          <>
            {" "}
            <Link to="/pipelines/$pipeline/runs/$schedule/$date" params={{ pipeline, schedule, date }}>
              {date}
            </Link>
          </>
        )}
      </h2>
      <p className="verdict">
        <Text>{verdict}</Text>
      </p>
      <NextLines why={why.data} />
      <p className="advice">
        <Text>{why.data.advice}</Text>
      </p>
    </section>
  );
}
