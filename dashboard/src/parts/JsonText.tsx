import { LongText } from "./LongText";

/** A value as JSON, cut where it is long. */
export function JsonText({ value }: { value: unknown }) {
  return (
    <pre className="json">
      <LongText>{JSON.stringify(value, null, 2)}</LongText>
    </pre>
  );
}
