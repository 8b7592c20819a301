/**
 * Makes a skill of a folder with a SKILL.md: what the registry shows of it, and a `run` that hands
 * the task and the instructions to the model of the run's agent. The standard knows no category and
 * no version; they are taken from `metadata`, leniently, because most public skills have neither.
 */
import { dirname } from 'node:path';
import type { SkillDefinition } from '../definition.ts';
import { listSkillFiles } from './skill-folder-files.ts';
import { readSkillMd, type SkillMd } from './skill-md.ts';
import { instructionsText } from './skill-md-instructions.ts';
import { reservedCategories } from './skill-shape.ts';

export interface ProseInput {
  readonly task: string;
}

export interface ProseOutput {
  readonly answer: string;
  /** There when the answer breaks off. */
  readonly is_cut?: true;
}

const CATEGORY_DEFAULT = 'agent-skills';
const CATEGORY_CHARS_MAX = 63;
const VERSION_DEFAULT = 'v1.0';
/** Many turns of a model fit in. */
const TIMEOUT_MS = 600_000;
const MAX_ATTEMPTS = 3;

const parameters = {
  type: 'object',
  required: ['task'],
  additionalProperties: false,
  properties: {
    task: {
      type: 'string',
      minLength: 1,
      maxLength: 65_536,
      pattern: '\\S',
      description: 'What to do, in plain words, with all that is needed to do it.',
    },
  },
};
const output = {
  type: 'object',
  required: ['answer'],
  additionalProperties: false,
  properties: {
    answer: { type: 'string', description: 'What the agent answered.' },
    is_cut: {
      const: true,
      description: 'There when the answer breaks off, because it had reached MODEL_OUTPUT_TOKENS.',
    },
  },
};

/** The skill of `file`, a SKILL.md, read where its `bytes` are not given. Throws SkillLoadError. */
export function proseSkill(file: string, bytes?: Buffer): SkillDefinition<ProseInput, ProseOutput> {
  const skill = readSkillMd(file, bytes);
  const category = categoryOf(skill.metadata.get('category'));
  const version = versionOf(skill.metadata.get('version'));
  let instructions: Promise<string> | undefined;
  return {
    category,
    name: skill.name,
    version,
    displayName: titleOf(skill.name),
    description: skill.description,
    parameters,
    output,
    timeoutMs: TIMEOUT_MS,
    maxAttempts: MAX_ATTEMPTS,
    continuesConversations: true,
    async run(input, ctx) {
      // Once: a repeated run must ask the same, or finished turns would be paid for again.
      instructions ??= readInstructions(skill, dirname(file));
      const { text, isCut } = await ctx.generate({
        prompt: input.task,
        system: await instructions,
        tools: toolsOf(skill.allowedTools),
        files: `${category}/${version}/${skill.name}`,
        continues: true,
      });
      return isCut ? { answer: text, is_cut: true } : { answer: text };
    },
  };
}

async function readInstructions(skill: SkillMd, folder: string): Promise<string> {
  return instructionsText(skill, await listSkillFiles(folder));
}

/** As a slug; the default for one that is reserved or has nothing to make a slug of. */
function categoryOf(category = ''): string {
  const slug = category
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, CATEGORY_CHARS_MAX)
    .replace(/-$/, '');
  return slug === '' || reservedCategories.has(slug) ? CATEGORY_DEFAULT : slug;
}

/** `2` is v2.0, `1.2.3` and `v1.2` are v1.2; the default for what is no such version. */
function versionOf(version = ''): string {
  const [, major, minor = '0'] =
    /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.\d+)?(?:[-+][\w.+-]*)?$/i.exec(version) ?? [];
  return major === undefined ? VERSION_DEFAULT : `v${Number(major)}.${Number(minor)}`;
}

function titleOf(name: string): string {
  return name.replace(
    /(^|-)([a-z0-9])/g,
    (_, hyphen: string, letter: string) => `${hyphen === '' ? '' : ' '}${letter.toUpperCase()}`,
  );
}

/** An agent's pattern of skills with a slash in it, or `*`: a bare word could be anybody's tool. */
const OWN_TOOL =
  /^(?:\*|(?:\*|[a-z0-9][a-z0-9-]*)\/(?:\*|v\d+\.\d+)(?:\/(?:\*|[a-z0-9][a-z0-9-]*))?)$/;

/**
 * What of the agent's tools the model may call: all, or those that entries of our own form name.
 * Others (`Read`, `Bash(git:*)`) are tools of other products and change nothing.
 */
function toolsOf(allowedTools: readonly string[]): true | string[] {
  const own = allowedTools.filter((tool) => OWN_TOOL.test(tool));
  return own.length === 0 || own.includes('*') ? true : own;
}
