/**
 * The types of the values that a skill's schemas allow, so that a definition has one source. TypeBox computes them from a
 * schema as it is written; its code is never loaded. A schema that zod made brings its types along.
 */
import type { XStatic } from 'typebox/schema';

/** A JSON Schema (draft 2020-12, or draft-07 when `$schema` says so). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * What `run` gets: what `parameters` allows. Unknown for a schema of which the compiler knows only that it is one, for
 * example one of a variable that is not `as const`.
 */
export type SkillInput<Schema> =
  Schema extends MadeOf<infer Input, unknown> ? Input : AllowedBy<Schema>;

/** What `run` returns: what `output` allows, with lists that may be read-only and optional fields that may be undefined. */
export type SkillOutput<Schema> =
  Schema extends MadeOf<unknown, infer Output> ? Output : AsReturned<AllowedBy<Schema>>;

/** A schema that was made of a type, by a library that follows Standard JSON Schema. */
interface MadeOf<Input, Output> {
  readonly '~standard': {
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type AllowedBy<Schema> = Schema extends { readonly type: infer Type }
  ? string extends Type
    ? unknown
    : XStatic<Known<Schema>>
  : XStatic<Known<Schema>>;

/** JSON leaves undefined fields out. An object of any fields may be of any type, an interface too. */
type AsReturned<Value> = Value extends readonly unknown[]
  ? { readonly [Index in keyof Value]: AsReturned<Value[Index]> }
  : Value extends object
    ? Readonly<Record<string, unknown>> extends Value
      ? object
      : {
          readonly [Name in keyof Value]:
            | AsReturned<Value[Name]>
            | (Record<never, never> extends Pick<Value, Name> ? undefined : never);
        }
    : Value;

type ForArrays = 'items' | 'prefixItems';
type ForObjects =
  | 'properties'
  | 'required'
  | 'additionalProperties'
  | 'patternProperties'
  | 'propertyNames';

/** A schema as TypeBox has to read it, so that it computes what JSON Schema means. */
type Known<Schema> = Schema extends readonly unknown[]
  ? { [Index in keyof Schema]: Known<Schema[Index]> }
  : Schema extends { readonly type: infer Types extends readonly string[] }
    ? number extends Types['length']
      ? KnownFields<Schema>
      : Types[number] & ('object' | 'array') extends never
        ? KnownFields<Schema>
        : // TypeBox would hold each of the types to the keywords of objects and lists.
          { anyOf: { [Index in keyof Types]: KnownFields<OfType<Schema, Types[Index]>> } }
    : Schema extends object
      ? KnownFields<Schema>
      : Schema;

type KnownFields<Schema> = {
  [Name in keyof Schema as IsKnown<Schema, Name> extends true ? Name : never]: Known<Schema[Name]>;
} & AnyFields<Schema>;

/** The part of a schema of several types that concerns one of them. */
type OfType<Schema, Type> = {
  [Name in keyof Schema as Name extends Unconcerned<Type> ? never : Name]: Name extends 'type'
    ? Type
    : Schema[Name];
};
type Unconcerned<Type> = Type extends 'object'
  ? ForArrays
  : Type extends 'array'
    ? ForObjects
    : ForArrays | ForObjects;

/** An object of whose fields nothing is said has any, as JSON Schema has it. */
type AnyFields<Schema> = Schema extends { readonly type: 'object' }
  ? keyof Schema & ForObjects extends never
    ? { readonly additionalProperties: true }
    : unknown
  : unknown;

/**
 * False for keywords whose value only shows at run time, such as `enum: Object.keys(names)`, which TypeBox would take for an
 * empty list, and for the items after those of a tuple, which it would take for all items.
 */
type IsKnown<Schema, Name extends keyof Schema> = Name extends 'items'
  ? Schema extends { readonly prefixItems: readonly unknown[] }
    ? false
    : true
  : Name extends 'type' | 'enum' | 'required' | 'anyOf' | 'oneOf' | 'allOf' | 'prefixItems'
    ? Schema[Name] extends readonly unknown[]
      ? number extends Schema[Name]['length']
        ? false
        : true
      : string extends Schema[Name]
        ? false
        : true
    : true;
