import address from "./layout.worker?worker&url";

interface Policy {
  createScriptURL: (text: string) => string;
}

/** Starts our own worker. The page's policy wants script addresses to be made by a policy of ours; this is the one. */
export function startWorker(): Worker {
  const types = (window as unknown as { trustedTypes?: { createPolicy: (name: string, rules: Policy) => Policy } }).trustedTypes;
  const own = (text: string) => {
    if (!new URL(text, window.location.href).pathname.startsWith("/assets/")) throw new TypeError("not a script of this page");
    return text;
  };
  policy ??= types?.createPolicy("interlock-worker", { createScriptURL: own });
  return new Worker(policy === undefined ? own(address) : policy.createScriptURL(address), { type: "module" });
}

let policy: Policy | undefined;
