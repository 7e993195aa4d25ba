import { useState } from "react";

import { api, data, type Schemas } from "../api/client";
import { ActionDialog } from "./ActionDialog";

type Result = "success" | "fail" | "timeout";
type Category = Schemas["FailureCategory"];

interface Props {
  pipeline: string;
  schedule: string;
  date: string;
  onClose: () => void;
}

/** Report how a job ended, for one that somebody else runs or that nobody heard of. */
export function ReportDialog({ pipeline, schedule, date, onClose }: Props) {
  const [result, setResult] = useState<Result>("success");
  const [category, setCategory] = useState<Category>("PERMANENT");
  const send = async (reason: string) => {
    const failed = result !== "success";
    const record = data(
      await api.POST("/api/v1/pipelines/{pipeline}/jobs", {
        params: { path: { pipeline } },
        body: { date, schedule, result, runId: "", error: failed ? reason : "", ...(failed ? { category } : {}) },
      }),
    );
    return `recorded: ${record.event} of attempt ${record.attempt}`;
  };
  return (
    <ActionDialog
      title="Report the outcome"
      target={`${pipeline} / ${schedule} / ${date}`}
      verb="Report"
      reason={result !== "success"}
      send={send}
      onClose={onClose}
    >
      <p>The active attempt ends as if its job had said so; a failure is retried within its budget.</p>
      <label className="field">
        Outcome
        <select value={result} onChange={(event) => setResult(event.target.value as Result)}>
          <option value="success">success</option>
          <option value="fail">fail</option>
          <option value="timeout">timeout</option>
        </select>
      </label>
      {result !== "success" && (
        <label className="field">
          Whose fault
          <select value={category} onChange={(event) => setCategory(event.target.value as Category)}>
            <option value="PERMANENT">PERMANENT: the code&apos;s</option>
            <option value="TRANSIENT">TRANSIENT: the world&apos;s</option>
            <option value="TIMEOUT">TIMEOUT</option>
          </select>
        </label>
      )}
    </ActionDialog>
  );
}
