import { useVirtualizer } from "@tanstack/react-virtual";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import type { EventView } from "../live/stream";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { visibleLine } from "../text/visible";

interface Props {
  events: readonly EventView[];
  loading: boolean;
  more: boolean;
  opened: EventView | null;
  onOlder: () => void;
  onOpen: (event: EventView) => void;
}

const ROW = 26;
const NARROW_ROW = 64;

/** A long list of events, of which only those on screen are drawn; older ones are read when its end is near. */
export function EventTail({ events, loading, more, opened, onOlder, onOpen }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const narrow = window.matchMedia("(max-width: 760px)").matches;
  const virtualizer = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (narrow ? NARROW_ROW : ROW),
    getItemKey: (index) => events[index]?.id ?? index,
    overscan: 6,
  });
  const shown = virtualizer.getVirtualItems();
  const last = shown[shown.length - 1]?.index ?? 0;
  useEffect(() => {
    if (more && !loading && last >= events.length - 30) onOlder();
  }, [more, loading, last, events.length, onOlder]);
  return (
    <div ref={scroller} className="tail" role="table" aria-label="Events, the newest first" aria-rowcount={events.length} tabIndex={0}>
      <div
        className="rows"
        role="rowgroup"
        ref={(element) => {
          if (element !== null) element.style.height = `${virtualizer.getTotalSize()}px`;
        }}
      >
        {shown.map((item) => {
          const event = events[item.index];
          if (event === undefined) return null;
          return (
            <div
              key={item.key}
              role="row"
              aria-rowindex={item.index + 1}
              className="e-line"
              data-event={event.id}
              data-opened={opened?.id === event.id || undefined}
              ref={(element) => {
                if (element !== null) element.style.transform = `translateY(${item.start}px)`;
              }}
            >
              <span role="cell" className="e-time">
                <Time at={event.timestamp} zone="UTC" seconds />
              </span>
              <span role="cell" className="e-severity" data-severity={event.severity}>
                {event.severity}
              </span>
              <span role="cell" className="e-type mono">
                {event.type}
              </span>
              <span role="cell" className="e-who">
                <Target event={event} />
              </span>
              <span role="cell" className="e-message" title={visibleLine(event.message.slice(0, 500))}>
                <Text>{event.message.slice(0, 500)}</Text>
              </span>
              <span role="cell">
                <button type="button" className="quiet e-more" onClick={() => onOpen(event)} aria-label={`JSON of ${event.type}`}>
                  JSON
                </button>
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Target({ event }: { event: EventView }) {
  const { pipelineId: pipeline, scheduleId: schedule, date } = event;
  if (pipeline === "") return null;
  if (schedule === "" || date === "") {
    return (
      <Link to="/pipelines/$pipeline" params={{ pipeline }}>
        <Text>{pipeline}</Text>
      </Link>
    );
  }
  return (
    <Link to="/pipelines/$pipeline/runs/$schedule/$date" params={{ pipeline, schedule, date }}>
      <Text>{`${pipeline} ${date}`}</Text>
    </Link>
  );
}
