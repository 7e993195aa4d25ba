import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, data } from "../api/client";
import { Text } from "../parts/Text";
import { ActionDialog } from "./ActionDialog";
import { Budgets } from "./Budgets";

interface Props {
  pipeline: string;
  schedule: string;
  date: string;
  onClose: () => void;
}

/** Ask for another attempt: what would be decided, what is left of the budgets, and who would feel it. */
export function RerunDialog({ pipeline, schedule, date, onClose }: Props) {
  const [force, setForce] = useState(false);
  const preview = useQuery({
    queryKey: ["preview", pipeline, schedule, date, force],
    queryFn: async ({ signal }) =>
      data(
        await api.POST("/api/v1/pipelines/{pipeline}/reruns:preview", {
          params: { path: { pipeline } },
          body: { date, schedule, force },
          signal,
        }),
      ),
    gcTime: 0,
    staleTime: 0,
  });
  const send = async (reason: string) => {
    const answer = data(
      await api.POST("/api/v1/pipelines/{pipeline}/reruns", {
        params: { path: { pipeline } },
        body: { date, schedule, reason, force },
      }),
    );
    return `${answer.decision}${answer.reason === "" ? "" : `: ${answer.reason}`}`;
  };
  return (
    <ActionDialog
      title="Rerun"
      target={`${pipeline} / ${schedule} / ${date}`}
      verb="Request the rerun"
      send={send}
      onClose={onClose}
    >
      {preview.data === undefined ? (
        <p className="muted">{preview.error === null ? "Asking what would become of it…" : preview.error.message}</p>
      ) : (
        <div className="effect">
          <p>
            Would be <b data-decision={preview.data.decision}>{preview.data.decision}</b>: <Text>{preview.data.reason}</Text>
          </p>
          <Budgets budgets={preview.data.budgets} />
          {preview.data.downstream.length > 0 && (
            <>
              <h3>Downstream</h3>
              <ul>
                {preview.data.downstream.map((one) => (
                  <li key={one.pipeline}>
                    <b>
                      <Text>{one.pipeline}</Text>
                    </b>
                    : <Text>{one.effect}</Text>
                  </li>
                ))}
              </ul>
            </>
          )}
        </div>
      )}
      <label className="check">
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} />
        Although nothing has changed (force)
      </label>
    </ActionDialog>
  );
}
