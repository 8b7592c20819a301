/**
 * The guards of an agent: skills that see a text before the model or the user does, and let it pass, replace it or refuse
 * it. What a guard is called with is checked when the agent is saved.
 */
import { type Issue, invalidIn } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';
import { type Skill, skillKeyParts } from '../skills/registry.ts';
import type { KnownSkills } from './covered.ts';

/** What guards see: what the user says, what a tool results in, what the model says. */
export const guardStages = ['message', 'tool_result', 'answer'] as const;
export type GuardStage = (typeof guardStages)[number];

/** What becomes of a text whose guard fails. */
export const guardFailures = ['refuse', 'pass'] as const;

export const guardActions = ['pass', 'replace', 'refuse'] as const;
export type GuardAction = (typeof guardActions)[number];

export const guardsMax = 10;
/** UTF-8 bytes of all guards of an agent, as JSON. */
const guardsBytesMax = 65_536;

export interface Guard {
  /** `category/version/name`. */
  readonly skill: string;
  readonly on: GuardStage[];
  /** Further fields of the skill's input. */
  readonly input?: Record<string, unknown>;
  /** `refuse` when it is left out. */
  readonly on_failure?: (typeof guardFailures)[number];
}

/** What a guard has decided about a text, as its step keeps it. */
export interface GuardVerdict {
  readonly on: GuardStage;
  /** The tool whose result the text is. */
  readonly tool: string | null;
  /** Null where the guard failed and its agent does not let texts pass then. */
  readonly action: GuardAction | null;
  readonly reason: string | null;
}

/** A text for a guard. */
export interface TextToGuard {
  readonly on: GuardStage;
  readonly text: string;
  /** The tool whose result it is. */
  readonly tool?: string | undefined;
}

/** The input of a guard's skill: the text, what it is where the skill's schema has fields for that, and the guard's own fields. */
export function guardInput(
  { parameters }: Skill,
  { input }: Guard,
  { text, on, tool }: TextToGuard,
): Record<string, unknown> {
  const fields = propertiesOf(parameters);
  return {
    ...input,
    text,
    ...('on' in fields && { on }),
    ...('tool' in fields && tool !== undefined && { tool }),
  };
}

/** Throws `400 validation_error` for guards that could not run. */
export function requireGuards(
  skills: KnownSkills,
  organizationId: string,
  guards: readonly Guard[],
): void {
  if (Buffer.byteLength(JSON.stringify(guards)) > guardsBytesMax) {
    throw invalidIn([
      { field: 'guards', issue: `must have at most ${guardsBytesMax} bytes of JSON` },
    ]);
  }
  const faults = guards.flatMap((guard, i) =>
    faultsOf(skills, organizationId, guard, `guards.${i}`),
  );
  if (faults.length > 0) throw invalidIn(faults);
}

function faultsOf(
  skills: KnownSkills,
  organizationId: string,
  guard: Guard,
  field: string,
): Issue[] {
  const skill = skills.definition(organizationId, ...skillKeyParts(guard.skill));
  if (!skill?.isActive) return [{ field: `${field}.skill`, issue: 'names no active skill' }];
  if (!('action' in propertiesOf(skill.output)) || !('text' in propertiesOf(skill.parameters))) {
    const issue = 'is no guard: it must take a text and give an action (docs/guards.md)';
    return [{ field: `${field}.skill`, issue }];
  }
  const own = Object.keys(guard.input ?? {}).find((name) => ['text', 'on', 'tool'].includes(name));
  if (own !== undefined) {
    return [{ field: `${field}.input.${own}`, issue: 'is filled by the platform' }];
  }
  for (const on of guard.on) {
    const sample = { on, text: 'text', tool: on === 'tool_result' ? 'tool' : undefined };
    const issues = skill.input.issuesOf(guardInput(skill, guard, sample));
    if (issues !== null) {
      return issues.map((one) => ({ field: `${field}.input.${one.field}`, issue: one.issue }));
    }
  }
  return [];
}

const propertiesOf = (schema: Readonly<Record<string, unknown>>): object =>
  isObject(schema['properties']) ? schema['properties'] : {};
