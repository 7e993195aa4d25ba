import { useEffect, useRef, useState, type ReactNode } from "react";

/**
 * A table that is wider than the screen is scrolled within its own box, its first column staying in sight. Only then is
 * the box reached by Tab, as it has to be scrolled by keys too.
 */
export function TableBox({ label, children }: { label: string; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null || typeof ResizeObserver === "undefined") return undefined;
    const look = () => setScrolls(element.scrollWidth > element.clientWidth + 1);
    const observer = new ResizeObserver(look);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => observer.disconnect();
  }, []);
  const reachable = scrolls ? { role: "region", "aria-label": label, tabIndex: 0 } : {};
  return (
    <div ref={box} className="table-box" data-scrolls={scrolls || undefined} {...reachable}>
      {children}
    </div>
  );
}
