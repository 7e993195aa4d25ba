/** Something is being read. Nothing old is shown under a new question. */
export function Loading({ what }: { what: string }) {
  return (
    <p className="state" role="status">
      Reading {what}…
    </p>
  );
}
