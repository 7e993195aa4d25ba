import { useEffect, useRef } from "react";

const KEYS: [string, string][] = [
  ["/", "search"],
  ["j, k", "next and previous pipeline"],
  ["arrows", "between cells"],
  ["Enter", "open what is focused"],
  ["w", "why: the run a lane speaks of"],
  ["?", "this list"],
];

/** `/` goes to the search of the page, `?` lists the keys. */
export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target instanceof Element ? event.target : null;
      if (target?.closest("input, textarea, select, dialog") !== null && target !== null) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") dialog.current?.showModal();
      const search = document.querySelector<HTMLElement>('[data-key="/"]');
      if (event.key === "/" && search !== null) {
        event.preventDefault();
        search.focus();
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
  return (
    <dialog ref={dialog} className="action" aria-label="Keys">
      <h2>Keys</h2>
      <table>
        <thead>
          <tr>
            <th>Key</th>
            <th>Does</th>
          </tr>
        </thead>
        <tbody>
          {KEYS.map(([key, does]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
