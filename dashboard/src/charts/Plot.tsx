import { useEffect, useRef } from "react";
import uPlot from "uplot";

import "uplot/dist/uPlot.min.css";

interface Props {
  options: Omit<uPlot.Options, "width" | "height">;
  data: uPlot.AlignedData;
  height: number;
  label: string;
}

/** A chart of uPlot, as wide as its place. What it shows is said in words by its label. */
export default function Plot({ options, data, height, label }: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const chart = new uPlot({ ...options, width: Math.max(element.clientWidth, 240), height }, data, element);
    const observer = new ResizeObserver(() => {
      chart.setSize({ width: Math.max(element.clientWidth, 240), height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [options, data, height]);
  return <div ref={place} className="plot" role="img" aria-label={label} />;
}
