import { useQuery } from "@tanstack/react-query";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { upcomingQuery } from "./queries";

const SHOWN = 6;

/** The next runs, with their limits; what the calendar withholds, with its reason. */
export function UpcomingList({ pipeline, timezone }: { pipeline: string; timezone: string }) {
  const upcoming = useQuery(upcomingQuery(pipeline));
  const items = upcoming.data?.items.slice(0, SHOWN) ?? [];
  return (
    <section className="upcoming">
      <h2>Next</h2>
      {upcoming.isPending && <Loading what="what comes next" />}
      {upcoming.error !== null && upcoming.data === undefined && <Failure error={upcoming.error} retry={() => void upcoming.refetch()} />}
      {upcoming.data !== undefined && items.length === 0 && <p className="muted">Nothing opens within a week.</p>}
      <ul>
        {items.map((one) => (
          <li key={`${one.schedule} ${one.date}`}>
            <b>{one.date}</b>{" "}
            {typeof one.excluded === "string" ? (
              <span className="muted">
                <Text>{one.excluded}</Text>
              </span>
            ) : (
              <>
                {typeof one.startAt === "string" ? (
                  <>
                    opens <Time at={one.startAt} zone={timezone} near />
                  </>
                ) : (
                  "opens by sensor or cascade"
                )}
                {typeof one.breachAt === "string" && (
                  <>
                    {", breach "}
                    <Time at={one.breachAt} zone={timezone} near />
                  </>
                )}
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
