/** Skills as functions: `skills.text.wordCount.v1_0.run(input)`, and the types that they have. */
import type { Skills } from './index.ts';
import type { RunOptions, StartedJob } from './jobs.ts';

export type InputOf<Id> = Id extends keyof Skills
  ? Skills[Id] extends { input: infer Input }
    ? Input
    : unknown
  : unknown;

export type OutputOf<Id> = Id extends keyof Skills
  ? Skills[Id] extends { output: infer Output }
    ? Output
    : unknown
  : unknown;

/** One version of a skill. */
export interface SkillVersion<Input = unknown, Output = unknown> {
  /** Runs it and waits for its output; rejects with JobFailedError. */
  run(input: Input, options?: RunOptions): Promise<Output>;
  /** Starts it and gives a handle of its job. */
  start(input: Input, options?: RunOptions): Promise<StartedJob<Output>>;
}

/** `word-count` as `wordCount`; `sha-256` stays, since `sha256` may be another one. */
type Camel<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? Lowercase<Tail> extends `${Letter}${string}`
    ? `${Head}${Capitalize<Camel<Tail>>}`
    : `${Head}-${Camel<Tail>}`
  : Text;
type Letter = LetterOf<'abcdefghijklmnopqrstuvwxyz'>;
type LetterOf<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? First | LetterOf<Rest>
  : never;
/** `v1.0` as `v1_0`. */
type Underscored<Version extends string> = Version extends `${infer Major}.${infer Minor}`
  ? `${Major}_${Minor}`
  : Version;

type Id = keyof Skills & string;
type CategoryOf<One> = One extends `${infer Category}/${string}` ? Category : never;
type IdIn<Category extends string> = Extract<Id, `${Category}/${string}`>;
type NameOf<One> = One extends `${string}/${string}/${infer Name}` ? Name : never;
type IdNamed<Category extends string, Name extends string> = Extract<
  Id,
  `${Category}/${string}/${Name}`
>;
type VersionOf<One> = One extends `${string}/${infer Version}/${string}` ? Version : never;

type TypedTree = {
  readonly [Category in CategoryOf<Id> as Camel<Category>]: {
    readonly [Name in NameOf<IdIn<Category>> as Camel<Name>]: {
      readonly [Version in VersionOf<
        IdNamed<Category, Name>
      > as Underscored<Version>]: SkillVersion<
        InputOf<`${Category}/${Version}/${Name}`>,
        OutputOf<`${Category}/${Version}/${Name}`>
      >;
    };
  };
};

interface AnyTree {
  readonly [category: string]: {
    readonly [name: string]: { readonly [version: string]: SkillVersion };
  };
}

/** The skills that have types; any skill where none has. */
export type SkillTree = [keyof Skills] extends [never] ? AnyTree : TypedTree;

/** Makes the tree; the names of a call lead to `version`, which calls the skill of this id. */
export function skillTree(version: (id: string) => SkillVersion): SkillTree {
  const tree = branch((category) =>
    branch((name) =>
      branch((text) => version(`${kebab(category)}/${text.replace('_', '.')}/${kebab(name)}`)),
    ),
  );
  return tree as SkillTree;
}

/** An object that has every property, made when it is asked for. */
function branch<Value>(grow: (name: string) => Value): Readonly<Record<string, Value>> {
  return new Proxy<Record<string, Value>>(
    {},
    {
      get(_target, name) {
        // Await and console.log read these properties; they name no skill.
        if (typeof name === 'symbol' || name === 'then' || name === 'toJSON') return undefined;
        return grow(name);
      },
    },
  );
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
