import type { Schemas } from "../api/client";
import { Text } from "../parts/Text";

/** The explanation as `interlock why` gives it. */
export function WhySections({ why }: { why: Schemas["Explanation"] }) {
  return (
    <div className="why-sections">
      <p className="verdict">
        <Text>{why.verdict}</Text>
      </p>
      {why.sections.map((section) => (
        <section key={section.title}>
          <h2>
            <Text>{section.title}</Text>
          </h2>
          <ul>
            {section.lines.map((line, index) => (
              <li key={index} data-mark={line.mark}>
                <Text>{line.text}</Text>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p className="advice">
        <Text>{why.advice}</Text>
      </p>
    </div>
  );
}
