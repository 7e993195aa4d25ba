import { Outlet, useSearch } from "@tanstack/react-router";

import { ZoneContext } from "../time/zoneContext";
import { Banner } from "./Banner";
import { Keys } from "./Keys";
import { LiveRegion } from "./LiveRegion";
import { NoticeList } from "./NoticeList";
import { TopBar } from "./TopBar";
import { UpgradeNotice } from "./UpgradeNotice";
import { useGaps } from "./useGaps";
import { useLive } from "../parts/useLive";

/** What surrounds every page: navigation, whether it is live, notices. */
export function Shell() {
  const { zone } = useSearch({ from: "__root__" });
  const { phase } = useLive();
  useGaps();
  return (
    <ZoneContext value={zone ?? "pipeline"}>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <TopBar />
      <Banner />
      <UpgradeNotice />
      <NoticeList />
      <main id="content" tabIndex={-1} data-stale={phase === "lost" || undefined}>
        <Outlet />
      </main>
      <LiveRegion />
      <Keys />
    </ZoneContext>
  );
}
