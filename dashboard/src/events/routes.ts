import { createLazyRoute } from "@tanstack/react-router";

import { EventsPage } from "./EventsPage";

export const events = createLazyRoute("/events")({ component: EventsPage });
