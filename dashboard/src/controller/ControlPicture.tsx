import type { Schemas } from "../api/client";
import { span } from "../time/spans";
import { useNow } from "../time/useNow";

const BOX = { width: 210, height: 78 };

/** The control structure (STAMP): the controller, its actuators, the processes they act on, and what is fed back. */
export function ControlPicture({ view }: { view: Schemas["ControllerView"] }) {
  const now = useNow(5000);
  const lag = (name: string) => view.functions.find((one) => one.name === name)?.lag ?? 0;
  const last = view.watchdog.lastAt;
  const watched = typeof last === "string" ? `${span(Math.max(now - Date.parse(last), 0))} ago` : "not yet";
  const waiting = Object.values(view.deliveries).reduce((sum, one) => sum + one, 0);
  const boxes: [number, number, string, string[]][] = [
    [20, 20, "Controller", [`stream-router: ${lag("stream-router")} behind`, `orchestrator: ${lag("orchestrator")} due`]],
    [330, 20, "Actuators", ["job targets", `${view.timers} timers armed`]],
    [640, 20, "Processes", [`${view.pipelines} pipelines`, "jobs and their data"]],
    [330, 160, "Feedback", ["sensors, job outcomes", `event-sink: ${lag("event-sink")} behind`]],
    [20, 160, "Watchdog", [`last pass ${watched}`, `${view.watchdog.failedChecks.length} checks failed`]],
    [640, 160, "People", [`${waiting} alerts waiting`, `${view.deadLetters} dead letters`]],
  ];
  const arrows = ["M230 59H326", "M540 59H636", "M690 98L545 168", "M330 180L234 104", "M125 160V102", "M540 210H636"];
  return (
    <figure className="scroll-x" tabIndex={0}>
      <svg width={870} height={260} role="img" aria-label="The control structure: controller, actuators, processes, feedback, watchdog and people">
        <defs>
          <marker id="control-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" className="arrow" />
          </marker>
        </defs>
        {arrows.map((path) => (
          <path key={path} d={path} className="edge" markerEnd="url(#control-arrow)" />
        ))}
        {boxes.map(([x, y, title, lines]) => (
          <g key={title} className="node">
            <rect x={x} y={y} width={BOX.width} height={BOX.height} rx={6} />
            <text x={x + 12} y={y + 22}>
              {title}
            </text>
            {lines.map((line, index) => (
              <text key={line} x={x + 12} y={y + 43 + index * 17} className="small">
                {line}
              </text>
            ))}
          </g>
        ))}
      </svg>
    </figure>
  );
}
