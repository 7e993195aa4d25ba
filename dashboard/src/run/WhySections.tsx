import type { Schemas } from "../api/client";
import { Text } from "../parts/Text";

/** The rest of the explanation, as `interlock why` gives it. */
export function WhySections({ why }: { why: Schemas["Explanation"] }) {
  const sections = why.sections.filter((section) => section.title !== "Next");
  return (
    <div className="why-sections">
      {sections.map((section) => (
        <section key={section.title}>
          <h2>
            <Text>{section.title}</Text>
          </h2>
          <ul className="marked">
            {section.lines.map((line, index) => (
              <li key={index} data-mark={line.mark}>
                <Text>{line.text}</Text>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
