import { useQuery } from "@tanstack/react-query";

import { controllerQuery } from "../api/controller";
import { Ago } from "../parts/Ago";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { ConfigFiles } from "./ConfigFiles";
import { ControlPicture } from "./ControlPicture";

/** The controller itself: what it controls and what it hears, its lag, its queues and its troubles. */
export function ControllerPage() {
  const controller = useQuery(controllerQuery);
  if (controller.data === undefined) {
    return controller.error === null ? (
      <Loading what="the controller" />
    ) : (
      <Failure error={controller.error} retry={() => void controller.refetch()} />
    );
  }
  const view = controller.data;
  const troubles = [...view.troubles, ...view.watchdog.failedChecks.map((check) => `watchdog check failed: ${check}`)];
  return (
    <article className="page">
      <h1>Controller</h1>
      <p className="muted">
        Interlock {view.version}, started <Time at={view.startedAt} zone="UTC" />, {view.pipelines} pipelines, {view.timers} timers armed
        {view.rate === 1 ? "" : `, its clock runs ${view.rate} times as fast`}
      </p>
      {troubles.length === 0 ? (
        <p className="well">No troubles.</p>
      ) : (
        <ul className="marked problem">
          {troubles.map((trouble) => (
            <li key={trouble} data-mark="fail">
              <Text>{trouble}</Text>
            </li>
          ))}
        </ul>
      )}
      <ControlPicture view={view} />
      <ConfigFiles view={view} />
      <section>
        <h2>Functions</h2>
        <TableBox label="Functions">
          <table>
            <thead>
              <tr>
                <th>Function</th>
                <th>Waits for it</th>
                <th>Last did something</th>
              </tr>
            </thead>
            <tbody>
              {view.functions.map((one) => (
                <tr key={one.name}>
                  <th scope="row">{one.name}</th>
                  <td>{one.lag}</td>
                  <td>{typeof one.lastAt === "string" ? <Ago at={one.lastAt} /> : <span className="muted">not known</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </TableBox>
      </section>
    </article>
  );
}
