/** The thread of `skillwright test`: loads the skills of a folder and runs their examples, one after the other. */
import { AssertionError } from 'node:assert';
import { isDeepStrictEqual, stripVTControlCharacters } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import type { SkillDefinition } from '../../core/skills/definition.ts';
import { provideAuthorModule } from '../../core/skills/sources/author-module.ts';
import { loadSkillModules } from '../../core/skills/sources/modules.ts';
import { runSkill, ScriptError } from '../testing/testing.ts';
import type { ExampleMessage, ThreadData } from './test-examples.ts';

/** How one example ended; `reason` is null where it passed. */
export interface ExampleResult {
  readonly skill: string;
  /** Counts from 1. */
  readonly example: number;
  readonly status: 'passed' | 'failed' | 'skipped';
  readonly reason: string | null;
  /** The lines in which another output differs from the example's: `+` of the run, `-` of the example. */
  readonly difference?: string;
}

type Ending = Pick<ExampleResult, 'status' | 'reason' | 'difference'>;

const reasonCharsMax = 2_000;
const { folder, timeoutMs, environment } = workerData as ThreadData;

try {
  await runAll();
  say({ done: true });
} catch (error) {
  say({ fault: error instanceof Error ? error.message : String(error) });
}

async function runAll(): Promise<void> {
  provideAuthorModule();
  const modules = await loadSkillModules([folder], { checkSchemas: true });
  const definitions: Record<string, SkillDefinition> = {};
  for (const { skill, run } of modules) {
    const { key, file, folder: ofSkill, code, ...facts } = skill;
    definitions[key] = { ...facts, run };
  }
  for (const [skill, definition] of Object.entries(definitions)) {
    for (const [i, example] of (definition.examples ?? []).entries()) {
      say({ begun: `${skill} example ${i + 1}` });
      const ended = await runExample(definition, example, definitions);
      say({ result: { skill, example: i + 1, ...ended } });
    }
  }
}

/** An example that needs the outside world is skipped: a test with a script runs it. */
async function runExample(
  definition: SkillDefinition,
  example: { readonly input: unknown; readonly output?: unknown },
  skills: Readonly<Record<string, SkillDefinition>>,
): Promise<Ending> {
  try {
    const config = settingsFrom(definition);
    const options = { timeoutMs, skills, children: skills, config };
    const { output, error } = await runSkill(definition, example.input, options);
    if (error?.code === 'missing_credentials') return skipped(error.message);
    if (error !== undefined) return failed(`${error.code}: ${error.message}`);
    if (example.output === undefined || isDeepStrictEqual(output, example.output)) {
      return { status: 'passed', reason: null };
    }
    return { ...failed('the output differs'), difference: differenceOf(output, example.output) };
  } catch (error) {
    if (!(error instanceof ScriptError)) return failed((error as Error).message);
    return skipped(error.message);
  }
}

/** The settings that the skill declares and the environment has, as a platform would take them. */
function settingsFrom({ config = {} }: SkillDefinition): Record<string, string> {
  return Object.fromEntries(
    Object.keys(config).flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Node's own comparison, without its heading. */
function differenceOf(actual: unknown, expected: unknown): string {
  const { message } = new AssertionError({ actual, expected, operator: 'deepStrictEqual' });
  const lines = stripVTControlCharacters(message).split('\n');
  return cut(
    lines
      .slice(lines.indexOf('') + 1)
      .join('\n')
      .trimEnd(),
  );
}

function skipped(reason: string): Ending {
  return { status: 'skipped', reason: cut(reason) };
}

function failed(reason: string): Ending {
  return { status: 'failed', reason: cut(reason) };
}

function cut(text: string): string {
  return text.length <= reasonCharsMax ? text : `${text.slice(0, reasonCharsMax)}…`;
}

function say(message: ExampleMessage): void {
  parentPort?.postMessage(message);
}
