import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

// What sensors, jobs and people wrote is shown as text: nothing may turn text into markup or code.
const markup = "is a way to turn text into markup or code: make text nodes and elements instead";
const sinks = [
  "innerHTML",
  "outerHTML",
  "insertAdjacentHTML",
  "dangerouslySetInnerHTML",
  "srcdoc",
  "createContextualFragment",
  "parseFromString",
  "setHTMLUnsafe",
];

export default tseslint.config(
  { ignores: ["node_modules", "src/api/schema.d.ts"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { "react-hooks": hooks },
    rules: {
      ...hooks.configs["recommended-latest"].rules,
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-restricted-properties": [
        "error",
        ...sinks.map((property) => ({ property, message: markup })),
        { object: "document", property: "write", message: markup },
        { object: "document", property: "writeln", message: markup },
        { object: "Date", property: "now", message: "use the controller's time (time/clock.ts)" },
      ],
      "no-restricted-syntax": [
        "error",
        ...sinks.map((name) => ({ selector: `JSXAttribute[name.name='${name}']`, message: markup })),
        ...sinks.map((name) => ({ selector: `Property[key.name='${name}']`, message: markup })),
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: "use the controller's time (time/clock.ts)" },
        { selector: "JSXAttribute[name.name='style'] Literal", message: "styles go into the style sheet" },
      ],
      "no-restricted-globals": [
        "error",
        { name: "EventSource", message: "hides a 401, and event types it was not told of: use live/stream.ts" },
        { name: "localStorage", message: "only settings.ts keeps anything, and never a token" },
        { name: "sessionStorage", message: "only settings.ts keeps anything, and never a token" },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off",
      "react-hooks/incompatible-library": "off",
    },
  },
  { files: ["eslint.config.js"], extends: [tseslint.configs.disableTypeChecked] },
);
