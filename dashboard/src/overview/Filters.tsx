import { useEffect, useRef, useState } from "react";

import { visibleLine } from "../text/visible";
import type { OverviewSearch } from "../url/search";
import { SPANS } from "./columns";

interface Props {
  search: OverviewSearch;
  owners: readonly string[];
  onChange: (next: Partial<Record<keyof OverviewSearch, unknown>>, replace?: boolean) => void;
}

const TYPING = 200;

/** Text, owner, how far back, and grouping. `/` goes to the text. */
export function Filters({ search, owners, onChange }: Props) {
  const [text, setText] = useState(search.q ?? "");
  const [asked, setAsked] = useState(search.q);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  if (asked !== search.q) {
    // Back, or a cleared filter: the address decides.
    setAsked(search.q);
    setText(search.q ?? "");
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setAsked(value === "" ? undefined : value);
      onChange({ q: value === "" ? undefined : value }, true);
    }, TYPING);
  };
  const all = search.owner !== undefined && !owners.includes(search.owner) ? [search.owner, ...owners] : owners;
  return (
    <div className="filters">
      <input
        type="search"
        className="search"
        data-key="/"
        placeholder="/ search"
        aria-label="Search pipelines"
        value={text}
        onChange={(event) => type(event.target.value)}
      />
      <label className="pick">
        <span className="spoken">Owner</span>
        <select value={search.owner ?? ""} onChange={(event) => onChange({ owner: event.target.value || undefined })}>
          <option value="">all owners</option>
          {all.map((owner) => (
            <option key={owner} value={owner}>
              {visibleLine(owner)}
            </option>
          ))}
        </select>
      </label>
      <label className="pick">
        <span className="spoken">How far back</span>
        <select
          value={search.span ?? "24h"}
          onChange={(event) => onChange({ span: event.target.value === "24h" ? undefined : event.target.value })}
        >
          {SPANS.map((span) => (
            <option key={span}>{span}</option>
          ))}
        </select>
      </label>
      <label className="pick">
        <span className="spoken">Group</span>
        <select
          value={search.group ?? "none"}
          onChange={(event) => onChange({ group: event.target.value === "none" ? undefined : event.target.value })}
        >
          <option value="none">by urgency</option>
          <option value="owner">by owner</option>
        </select>
      </label>
    </div>
  );
}
