import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Plugin } from "vite";

const PACKAGE = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//;

// Shared by the page and its worker, which is bundled on its own, before the page is written.
const folders = new Map<string, string>();

/** The licences of the packages that are in the bundle, as a file beside it. */
export function licences(main: boolean): Plugin {
  return {
    name: "interlock-licences",
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
          const match = PACKAGE.exec(id.replaceAll("\\", "/").replace(/^\0/, ""));
          if (match?.[1] !== undefined && match[2] !== undefined) folders.set(match[2], match[1]);
        }
      }
      if (!main) return;
      const texts = [...folders].sort().map(([name, folder]) => textOf(name, folder));
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(80)}\n\n`) });
    },
  };
}

function textOf(name: string, folder: string): string {
  const described = JSON.parse(readFileSync(join(folder, "package.json"), "utf-8")) as { version: string; license?: string };
  const file = readdirSync(folder).find((one) => /^licen[cs]e(\.|$)/i.test(one));
  const text = file === undefined ? "" : `\n${readFileSync(join(folder, file), "utf-8").trim()}\n`;
  return `${name} ${described.version} (${described.license ?? "no licence named"})\n${text}`;
}
