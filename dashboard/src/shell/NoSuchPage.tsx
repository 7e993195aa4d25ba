import { Link } from "@tanstack/react-router";

/** An address that is no page. */
export function NoSuchPage() {
  return (
    <div className="state">
      <h1>No such page</h1>
      <p>
        There is nothing at this address. <Link to="/">Back to the overview</Link>
      </p>
    </div>
  );
}
