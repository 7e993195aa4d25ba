import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { arrange, moved as countMoved, type Group, type Place } from "./order";
import type { Lane } from "./states";

const SETTLE = 1000;

/** The order of the lanes. It follows their state, but never while a pointer or the focus is among them. */
export function useOrder(lanes: readonly Lane[], group: Group) {
  const [kept, setKept] = useState<{ group: Group; places: Place[] }>(() => ({ group, places: arrange(lanes, group) }));
  const busy = useRef(false);
  const wanted = useMemo(() => arrange(lanes, group), [lanes, group]);
  const known = kept.places.length > 0 && kept.group === group;
  const places = known ? kept.places : wanted;
  const moved = useMemo(() => countMoved(places, wanted), [places, wanted]);
  const resort = useCallback(() => setKept({ group, places: wanted }), [group, wanted]);
  const fresh = !known || wanted.length !== places.length;
  useEffect(() => {
    if (!fresh && moved === 0) return undefined;
    const timer = setTimeout(
      () => {
        if (!busy.current || fresh) setKept({ group, places: wanted });
      },
      fresh ? 0 : SETTLE,
    );
    return () => clearTimeout(timer);
  }, [fresh, moved, group, wanted]);
  const pointer = useMemo(
    () => ({
      onPointerEnter: () => {
        busy.current = true;
      },
      onPointerLeave: () => {
        busy.current = false;
      },
      onFocus: () => {
        busy.current = true;
      },
      onBlur: () => {
        busy.current = false;
      },
    }),
    [],
  );
  return { places, moved, resort, pointer };
}
