import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { compileSchema } from '../../../kernel/json-schema.ts';
import type { GenerateRequest, SkillContext } from '../definition.ts';
import { loadSkillModules, type SkillModule } from './modules.ts';
import { readSkillFile } from './skill-folder.ts';

const fixtures = fileURLToPath(new URL('../../../../test/fixtures/agent-skills', import.meta.url));
const examples = fileURLToPath(new URL('../../../../examples/agent-skills', import.meta.url));

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'skills-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(path: string, content: string): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), content);
}

async function load(frontMatter = '', body = 'Read it.'): Promise<SkillModule> {
  write(
    'pdf/SKILL.md',
    `---\nname: pdf\ndescription: Reads PDF files.\n${frontMatter}\n---\n${body}`,
  );
  const [module] = await loadSkillModules([dir], { checkSchemas: true });
  return module as SkillModule;
}

const usage = {
  ...{ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  ...{ cost_usd: null, cost_is_partial: true },
};

/** What the skill asks its agent's model. */
async function requestOf({ run }: SkillModule, task = 'Read a.pdf'): Promise<GenerateRequest> {
  const requests: GenerateRequest[] = [];
  const generate: SkillContext['generate'] = async (request) => {
    requests.push(request);
    return { text: 'Done.', isCut: false, turns: 1, usage };
  };
  expect(await run({ task }, { generate } as SkillContext)).toEqual({ answer: 'Done.' });
  expect(requests).toHaveLength(1);
  return requests[0] as GenerateRequest;
}

async function systemOf(module: SkillModule): Promise<string> {
  const { system = '' } = await requestOf(module);
  return system;
}

describe('what the registry shows', () => {
  test('a skill with the standard fields alone gets the defaults', async () => {
    const { skill } = await load();
    expect(skill).toMatchObject({
      key: 'agent-skills/v1.0/pdf',
      category: 'agent-skills',
      version: 'v1.0',
      displayName: 'Pdf',
      description: 'Reads PDF files.',
      requiredScopes: ['agent-skills'],
      timeoutMs: 600_000,
      maxAttempts: 3,
      continuesConversations: true,
      taskField: 'task',
      answerField: 'answer',
      file: join(dir, 'pdf/SKILL.md'),
      folder: join(dir, 'pdf'),
      code: null,
    });
  });

  test('the schemas take a task and give an answer', async () => {
    const { skill } = await load();
    const takes = compileSchema(skill.parameters);
    expect(takes({ task: 'x'.repeat(65_536) })).toBeNull();
    for (const input of [{}, { task: '' }, { task: ' \n' }, { task: 1 }, { task: 'a', b: 1 }]) {
      expect(takes(input)).not.toBeNull();
    }
    expect(takes({ task: 'x'.repeat(65_537) })).not.toBeNull();
    expect(compileSchema(skill.output)({ answer: '' })).toBeNull();
  });

  test.each([
    ['documents', 'documents'],
    ['Web Search & Scraping', 'web-search-scraping'],
    ['Développement', 'developpement'],
    ['-a-', 'a'],
    ['x'.repeat(80), 'x'.repeat(63)],
    [`${'x'.repeat(62)} y`, 'x'.repeat(62)],
    ['jobs', 'agent-skills'],
    ['""', 'agent-skills'],
    ['开发', 'agent-skills'],
    ['[a, b]', 'agent-skills'],
  ])('metadata.category %s makes the category %s', async (said, category) => {
    const { skill } = await load(`metadata:\n  category: ${said}`);
    expect(skill.category).toBe(category);
    expect(skill.requiredScopes).toEqual([category]);
  });

  test.each([
    ['1.0', 'v1.0'],
    ['"1.10"', 'v1.10'],
    ['1.10', 'v1.10'],
    ['v1.2', 'v1.2'],
    ['1.2.3', 'v1.2'],
    ['2.0.0-beta.1', 'v2.0'],
    ['2', 'v2.0'],
    ['2026.05.01', 'v2026.5'],
    ['latest', 'v1.0'],
    ['1.x', 'v1.0'],
    ['1234567890123', 'v1.0'],
    ['', 'v1.0'],
  ])('metadata.version %s makes the version %s', async (said, version) => {
    expect((await load(`metadata:\n  version: ${said}`)).skill.version).toBe(version);
  });
});

describe('what the model is asked', () => {
  test('the task is the prompt, the instructions are the system text', async () => {
    const { system = '', ...request } = await requestOf(await load());
    expect(request).toEqual({
      prompt: 'Read a.pdf',
      tools: true,
      files: 'agent-skills/v1.0/pdf',
      continues: true,
    });
    expect(system).toContain('You carry out the skill pdf: Reads PDF files.');
    expect(system).toContain('<skill_instructions name="pdf">\nRead it.\n</skill_instructions>');
    expect(system).toContain('Nothing can be executed here');
    expect(system).not.toContain('read_file');
  });

  test.each<[string, boolean | string[]]>([
    ['Bash(git:*) Read', true],
    [
      'Read text/* web/v1.0/fetch-page data/v1.0/*',
      ['text/*', 'web/v1.0/fetch-page', 'data/v1.0/*'],
    ],
    ['[Read, text/*]', ['text/*']],
    ['"*"', true],
    ['text/* *', true],
    ['"*/*/summarize"', ['*/*/summarize']],
    ['Read text/v1.0 */v1.0', ['text/v1.0', '*/v1.0']],
    ['text read', true],
    ['Bash(npm/*) mcp__a/b Edit/*', true],
  ])('allowed-tools: %s gives the model %j', async (said, tools) => {
    expect((await requestOf(await load(`allowed-tools: ${said}`))).tools).toEqual(tools);
  });

  test('an answer that breaks off says so', async () => {
    const { run, skill } = await load();
    const generate = async () => ({ text: 'Do', isCut: true, turns: 1, usage });
    const given = await run({ task: 'Read a.pdf' }, { generate } as unknown as SkillContext);
    expect(given).toEqual({ answer: 'Do', is_cut: true });
    expect(compileSchema(skill.output)(given)).toBeNull();
  });

  test('files are named with their sizes, never shown', async () => {
    cpSync(fixtures, dir, { recursive: true });
    const [module] = await loadSkillModules([dir]);
    const system = await systemOf(module as SkillModule);
    expect(system).toContain('- references/format.md (');
    expect(system).toContain('- scripts/changes.mjs (');
    expect(system).toContain('read_file');
    expect(system).toContain('What the skill says it needs: Requires git');
    expect(system).not.toContain('SKILL.md (');
    expect(system).not.toContain('heliotrope');
  });

  test('of many files 200 are named and the rest is counted', async () => {
    const module = await load();
    for (let i = 0; i < 300; i++) write(`pdf/assets/${i}.txt`, '');
    const lines = (await systemOf(module)).split('\n').filter((line) => line.startsWith('- '));
    expect(lines).toHaveLength(200);
    expect(lines.at(-1)).toBe('- and 101 more');
  });

  test('names that are long, or have a line break, stay within their line and the limit', async () => {
    const module = await load('', 'é'.repeat(250_000));
    const folder = `${'d'.repeat(200)}/`.repeat(4);
    for (let i = 0; i < 100; i++) write(`pdf/${folder}${i}`, '');
    write('pdf/a\n- b', '');
    const system = await systemOf(module);
    expect(system).toContain('- "a\\n- b" (0 bytes)\n');
    expect(system).toMatch(/\n- and \d+ more\n/);
    expect(Buffer.byteLength(system)).toBeLessThan(262_144);
  });

  test('instructions that are too long are cut, and the rest is where it says', async () => {
    const module = await load('', `${'é'.repeat(120_000)} The end.`);
    const system = await systemOf(module);
    const [, offset] = /read_file and offset (\d+)\./.exec(system) ?? [];
    const [, shown = ''] = /<skill_instructions name="pdf">\n(é+)\n/.exec(system) ?? [];
    const rest = await readSkillFile(join(dir, 'pdf'), 'SKILL.md', { offset: Number(offset) });
    const text = 'text' in rest ? rest.text : rest.error;
    const [tail = ''] = text.split(' The end.');
    expect(shown.length + tail.length).toBe(120_000);
  });

  test('a run that is repeated asks the same, also when a file has come in since', async () => {
    const module = await load();
    const before = await requestOf(module);
    write('pdf/new.md', '');
    expect(await requestOf(module)).toEqual(before);
  });
});

test('the folders to copy are loaded as they are', async () => {
  const loaded = await loadSkillModules([fixtures, examples]);
  expect(loaded.map(({ skill }) => skill.key)).toEqual([
    'writing/v1.2/release-notes',
    'agent-skills/v1.0/tone-of-voice',
    'documents/v1.0/meeting-minutes',
  ]);
});
