/** The input of a trigger's mapping: the call from outside. */
export interface MappingContext {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
}
