import { useSyncExternalStore } from "react";

import { Text } from "../parts/Text";
import { notices } from "./notices";

/** Notices, until they are dismissed. */
export function NoticeList() {
  const list = useSyncExternalStore(notices.subscribe, notices.snapshot);
  if (list.length === 0) return null;
  return (
    <div className="notices" role="status">
      {list.map((text) => (
        <p key={text}>
          <Text>{text}</Text>
          <button type="button" className="quiet" onClick={() => notices.dismiss(text)}>
            Dismiss
          </button>
        </p>
      ))}
    </div>
  );
}
