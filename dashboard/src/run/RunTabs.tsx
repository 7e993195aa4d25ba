import { Tab, TabList, TabPanel, TabProvider } from "@ariakit/react";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { Budgets } from "../actions/Budgets";
import type { Schemas } from "../api/client";
import { EventList } from "../events/EventList";
import { JsonText } from "../parts/JsonText";
import { RUN_TABS, type RunTab } from "../url/search";
import { AttemptTable } from "./AttemptTable";
import { JobLog } from "./JobLog";
import { PostRun } from "./PostRun";
import { RuleTable } from "./RuleTable";

/** Everything that hangs on a run, one thing at a time. */
export function RunTabs({ run, timezone }: { run: Schemas["RunDetail"]; timezone: string }) {
  const { tab } = useSearch({ from: "/pipelines/$pipeline/runs/$schedule/$date" });
  const navigate = useNavigate();
  const choose = (id: string | null | undefined) => {
    const next = RUN_TABS.find((one) => one === id);
    void navigate({ to: ".", search: (before) => ({ ...before, tab: next === "rules" ? undefined : next }) });
  };
  const names: Record<RunTab, string> = {
    rules: "Rules",
    log: "Job log and output",
    attempts: `Attempts (${run.attempts.length})`,
    events: `Events (${run.events.length})`,
    after: "Post-run",
    raw: "Raw",
  };
  return (
    <TabProvider selectedId={tab ?? "rules"} setSelectedId={choose} selectOnMove>
      <TabList className="tabs" aria-label="Of this run">
        {RUN_TABS.map((id) => (
          <Tab key={id} id={id} className="tab">
            {names[id]}
          </Tab>
        ))}
      </TabList>
      <TabPanel tabId="rules" className="panel">
        <RuleTable rules={run.rules} live={run.rulesLive} timezone={timezone} />
        <h2>Budgets</h2>
        <Budgets budgets={run.budgets} />
      </TabPanel>
      <TabPanel tabId="log" className="panel" unmountOnHide>
        <JobLog run={run} timezone={timezone} />
      </TabPanel>
      <TabPanel tabId="attempts" className="panel" unmountOnHide>
        <AttemptTable attempts={run.attempts} timezone={timezone} />
      </TabPanel>
      <TabPanel tabId="events" className="panel" unmountOnHide>
        <EventList events={run.events} timezone={timezone} />
      </TabPanel>
      <TabPanel tabId="after" className="panel" unmountOnHide>
        <PostRun run={run} timezone={timezone} />
      </TabPanel>
      <TabPanel tabId="raw" className="panel" unmountOnHide>
        <JsonText value={run} />
      </TabPanel>
    </TabProvider>
  );
}
