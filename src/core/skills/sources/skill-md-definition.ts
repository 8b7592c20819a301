/**
 * Turns a folder with a SKILL.md into a skill: its entry in the registry, and a `run` that sends the task
 * and the instructions to the model of the run's agent. The standard defines no category and no version.
 * They come from `metadata`, with defaults, because most public skills have neither.
 */
import { dirname } from 'node:path';
import { normalized } from '../../../kernel/text.ts';
import type { SkillDefinition, SkillFile } from '../definition.ts';
import { reservedCategories } from '../field-checks.ts';
import { listSkillFiles } from './skill-folder-files.ts';
import { readSkillMd, type SkillMd } from './skill-md.ts';
import { instructionsText } from './skill-md-instructions.ts';

export interface SkillMdInput {
  readonly task: string;
}

export interface SkillMdOutput {
  readonly answer: string;
  /** Present when the answer is cut. */
  readonly is_cut?: true;
  /** The pictures that the model has made; absent without any. */
  readonly files?: readonly SkillFile[];
}

const categoryDefault = 'agent-skills';
const categoryCharsMax = 63;
const versionDefault = 'v1.0';
/** Long enough for many turns of a model. */
const timeoutMsDefault = 600_000;

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
    files: {
      type: 'array',
      items: { type: 'object' },
      description: 'The pictures that the model has made, as files; absent without any.',
    },
  },
};

/** The skill of `file`, a SKILL.md; reads the file unless `bytes` is given. Throws SkillLoadError. */
export function skillFromSkillMd(
  file: string,
  bytes?: Buffer,
): SkillDefinition<SkillMdInput, SkillMdOutput> {
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
    timeoutMs: timeoutMsDefault,
    continuesConversations: true,
    taskField: 'task',
    answerField: 'answer',
    async run(input, ctx) {
      // Computed once: a repeated run must send an equal request to reuse its recorded turns.
      instructions ??= readInstructions(skill, dirname(file));
      const { text, isCut, files } = await ctx.generate({
        prompt: input.task,
        system: await instructions,
        tools: toolsOf(skill.allowedTools),
        files: `${category}/${version}/${skill.name}`,
        continues: true,
      });
      return {
        answer: text,
        ...(isCut ? { is_cut: true } : {}),
        ...(files === undefined ? {} : { files }),
      };
    },
  };
}

async function readInstructions(skill: SkillMd, folder: string): Promise<string> {
  return instructionsText(skill, await listSkillFiles(folder));
}

/** The text as a slug; the default when the slug is empty or reserved. */
function categoryOf(category = ''): string {
  const slug = normalized(category, 'NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, categoryCharsMax)
    .replace(/-$/, '');
  return slug === '' || reservedCategories.has(slug) ? categoryDefault : slug;
}

/** `2` becomes v2.0; `1.2.3` and `v1.2` become v1.2; any other text gives the default. */
function versionOf(version = ''): string {
  const [, major, minor = '0'] =
    /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.\d+)?(?:[-+][\w.+-]*)?$/i.exec(version) ?? [];
  return major === undefined ? versionDefault : `v${Number(major)}.${Number(minor)}`;
}

function titleOf(name: string): string {
  return name.replace(
    /(^|-)([a-z0-9])/g,
    (_, hyphen: string, letter: string) => `${hyphen === '' ? '' : ' '}${letter.toUpperCase()}`,
  );
}

/** A pattern of skills with a slash, or `*`; a bare word may be another product's tool. */
const ownTool =
  /^(?:\*|(?:\*|[a-z0-9][a-z0-9-]*)\/(?:\*|v\d+\.\d+)(?:\/(?:\*|[a-z0-9][a-z0-9-]*))?)$/;

/**
 * The tools that the model may call: all tools of the agent, or those that entries in the platform's own
 * form name. Other entries (`Read`, `Bash(git:*)`) are tools of other products and are ignored.
 */
function toolsOf(allowedTools: readonly string[]): true | string[] {
  const own = allowedTools.filter((tool) => ownTool.test(tool));
  return own.length === 0 || own.includes('*') ? true : own;
}
