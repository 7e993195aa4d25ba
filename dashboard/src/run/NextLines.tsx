import type { Schemas } from "../api/client";
import { Text } from "../parts/Text";

/** What happens next and when, in the words of `why`. */
export function NextLines({ why }: { why: Schemas["Explanation"] }) {
  const next = why.sections.find((section) => section.title === "Next");
  if (next === undefined) return null;
  return (
    <dl className="next-lines">
      <dt>Next</dt>
      <dd>
        <ul>
          {next.lines.map((line, index) => (
            <li key={index} data-mark={line.mark}>
              <Text>{line.text}</Text>
            </li>
          ))}
        </ul>
      </dd>
    </dl>
  );
}
