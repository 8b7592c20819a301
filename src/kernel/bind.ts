/** Binds verbs to their dependencies: `verb(deps, …input)` becomes `verb(…input)`. */

type Verb<Deps> = (deps: Deps, ...input: never[]) => unknown;

export type Bound<Verbs extends Record<string, (...all: never[]) => unknown>> = {
  [Name in keyof Verbs]: Verbs[Name] extends (deps: never, ...input: infer Input) => infer Result
    ? (...input: Input) => Result
    : never;
};

export function bind<Deps, Verbs extends Record<string, Verb<Deps>>>(
  deps: Deps,
  verbs: Verbs,
): Bound<Verbs> {
  const bound = Object.entries(verbs).map(([name, verb]) => [name, verb.bind(undefined, deps)]);
  return Object.fromEntries(bound) as Bound<Verbs>;
}
