/** The thread of `skillwright test`: loads the skills of a folder and runs their examples, one after the other. */
import { isDeepStrictEqual } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import type { SkillDefinition } from '../skills/definition.ts';
import { provideAuthorModule } from '../skills/sources/author-module.ts';
import { loadSkillModules } from '../skills/sources/modules.ts';
import { runSkill, ScriptError } from '../testing/testing.ts';
import type { ExampleMessage, ThreadData } from './test-examples.ts';

/** How one example ended; `reason` is null where it passed. */
export interface ExampleResult {
  readonly skill: string;
  /** Counts from 1. */
  readonly example: number;
  readonly status: 'passed' | 'failed' | 'skipped';
  readonly reason: string | null;
}

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
  const modules = await loadSkillModules([folder], { checkSchemas: () => true });
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
): Promise<Pick<ExampleResult, 'status' | 'reason'>> {
  try {
    const config = settingsFrom(definition);
    const options = { timeoutMs, skills, children: skills, config };
    const { output, error } = await runSkill(definition, example.input, options);
    if (error?.code === 'missing_credentials') return skipped(error.message);
    if (error !== undefined) return failed(`${error.code}: ${error.message}`);
    if (example.output === undefined || isDeepStrictEqual(output, example.output)) {
      return { status: 'passed', reason: null };
    }
    return failed(`expected ${JSON.stringify(example.output)}, got ${JSON.stringify(output)}`);
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

function skipped(reason: string): Pick<ExampleResult, 'status' | 'reason'> {
  return { status: 'skipped', reason: cut(reason) };
}

function failed(reason: string): Pick<ExampleResult, 'status' | 'reason'> {
  return { status: 'failed', reason: cut(reason) };
}

function cut(text: string): string {
  return text.length <= reasonCharsMax ? text : `${text.slice(0, reasonCharsMax)}…`;
}

function say(message: ExampleMessage): void {
  parentPort?.postMessage(message);
}
