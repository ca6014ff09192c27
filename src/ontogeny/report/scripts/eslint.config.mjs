// A name that nobody imported, an import that nobody uses, and one that another name hides.

import globals from "globals";

export default [
  {
    files: ["*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: { "no-undef": "error", "no-unused-vars": "error", "no-import-assign": "error", "no-shadow": "error" },
  },
];
