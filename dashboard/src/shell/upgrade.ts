// After an upgrade of the controller an open tab asks for files that are gone: it loads the new page, once.

const TRIED = "interlock-reloaded";

/** A part of this page cannot be loaded. True when the page is loaded anew, false when that was tried already. */
export function partIsGone(): boolean {
  return !window.dispatchEvent(new Event("vite:preloadError", { cancelable: true }));
}

/** A part of the page; one that is gone never comes, as the page is being loaded anew. */
export async function whole<T>(part: Promise<T>): Promise<T> {
  const loaded = (await part) as T | undefined;
  return loaded ?? new Promise<T>(() => undefined);
}

/** Load the page anew, where the reader wanted to go, the first time that a part of this build is missing. */
export function reloadWhenUpgraded(place: () => string): void {
  window.addEventListener("vite:preloadError", (event) => {
    // By build: the next upgrade under the same tab may try again.
    if (window.sessionStorage.getItem(TRIED) === import.meta.url) return;
    window.sessionStorage.setItem(TRIED, import.meta.url);
    event.preventDefault();
    window.location.replace(place());
  });
}
