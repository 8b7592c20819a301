import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mcpClients } from './clients.ts';

const near = 'http://127.0.0.1:3000/mcp';
const key = 'sk_0123456789abcdef';
const textOf = (value: string, url = near) =>
  mcpClients.find((client) => client.value === value)?.text(url, key) ?? '';

interface Desktop {
  readonly mcpServers: {
    readonly skillwright: {
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    };
  };
}
const desktopOf = (url?: string) =>
  (JSON.parse(textOf('claude-desktop', url)) as Desktop).mcpServers.skillwright;

test('no argument of Claude Desktop has a space, and the key is in the environment', () => {
  const { args, env } = desktopOf();
  for (const argument of args) expect(argument).toMatch(/^\S+$/);
  expect(args.slice(0, 3)).toEqual(['-y', 'mcp-remote', near]);
  expect(args.at(-2)).toBe('--header');
  expect(args.at(-1)).toMatch(/^Authorization:\$\{AUTH\}$/);
  expect(env).toEqual({ AUTH: `Bearer ${key}` });
});

test.each([
  [near, false],
  ['http://localhost:3000/mcp', false],
  ['https://skills.example/mcp', false],
  ['http://skills.example/mcp', true],
  ['http://192.0.2.7:3000/mcp', true],
])('Claude Desktop reaches %s, with --allow-http: %s', (url, isAllowed) => {
  expect(desktopOf(url).args.includes('--allow-http')).toBe(isAllowed);
});

test('VS Code asks for the key, which is not in the file', () => {
  const text = textOf('vs-code');
  expect(text).not.toContain(key);
  const { inputs, servers } = JSON.parse(text);
  expect(inputs).toMatchObject([{ type: 'promptString', id: 'skillwright-key', password: true }]);
  expect(servers.skillwright.headers.Authorization).toMatch(/^Bearer \$\{input:skillwright-key\}$/);
});

test.each(['claude-code', 'inspector'])(
  'the command for %s is one line that the shells of Windows take too',
  (value) => {
    const text = textOf(value);
    expect(text).not.toMatch(/[\n'\\]/);
    expect(text).toContain(`--header "Authorization: Bearer ${key}"`);
  },
);

test('docs/mcp.md has the same texts', () => {
  const guide = readFileSync(new URL('../../../docs/mcp.md', import.meta.url), 'utf8');
  for (const { text } of mcpClients) expect(guide).toContain(`\n${text(near, 'sk_…')}\n`);
});
