/** How clients of the Model Context Protocol are configured: text to copy, for each of them. */
import { quoted } from '../ui/quoted.ts';

export interface McpClient {
  readonly value: string;
  readonly label: string;
  /** Where the text goes. */
  readonly where: string;
  text(url: string, key: string): string;
}

const json = (value: object) => JSON.stringify(value, null, 2);
const headersOf = (key: string) => ({ Authorization: `Bearer ${key}` });

export const mcpClients: readonly McpClient[] = [
  {
    value: 'claude-code',
    label: 'Claude Code',
    where: 'Run this in a terminal.',
    text: (url, key) =>
      [
        `claude mcp add --transport http skillwright ${quoted(url)} \\`,
        `  --header ${quoted(`Authorization: Bearer ${key}`)}`,
      ].join('\n'),
  },
  {
    value: 'claude-desktop',
    label: 'Claude Desktop',
    where:
      'Settings, Developer, Edit config. Claude Desktop starts a program that forwards to the address; it needs Node.',
    text: (url, key) =>
      json({
        mcpServers: {
          skillwright: {
            command: 'npx',
            args: ['mcp-remote', url, '--header', `Authorization: Bearer ${key}`],
          },
        },
      }),
  },
  {
    value: 'cursor',
    label: 'Cursor',
    where: 'In .cursor/mcp.json of a project, or of your home directory.',
    text: (url, key) => json({ mcpServers: { skillwright: { url, headers: headersOf(key) } } }),
  },
  {
    value: 'vs-code',
    label: 'VS Code',
    where: 'In .vscode/mcp.json of a project.',
    text: (url, key) =>
      json({ servers: { skillwright: { type: 'http', url, headers: headersOf(key) } } }),
  },
  {
    value: 'inspector',
    label: 'Inspector',
    where: 'Run this in a terminal: it lists the tools of the key.',
    text: (url, key) =>
      [
        `npx @modelcontextprotocol/inspector --cli ${quoted(url)} --transport http \\`,
        `  --header ${quoted(`Authorization: Bearer ${key}`)} --method tools/list`,
      ].join('\n'),
  },
];
