/** How clients of the Model Context Protocol are configured: text to copy, for each of them. */

export interface McpClient {
  readonly value: string;
  readonly label: string;
  /** Where the text goes. */
  readonly where: string;
  text(url: string, key: string): string;
}

const json = (value: object) => JSON.stringify(value, null, 2);
/** One line without single quotes, which the shells of Windows take as well as the others. */
const command = (...words: string[]) => words.join(' ');
/** What a client replaces by the value of a variable. */
const placeholder = (name: string) => `$\{${name}}`;
const headersOf = (key: string) => ({ Authorization: `Bearer ${key}` });

export const mcpClients: readonly McpClient[] = [
  {
    value: 'claude-code',
    label: 'Claude Code',
    where:
      'Run this in a terminal. It is kept for this directory in ~/.claude.json (Windows: %USERPROFILE%\\.claude.json); with --scope user for all of them.',
    text: (url, key) =>
      command(
        ...['claude mcp add --transport http skillwright', url],
        ...['--header', `"Authorization: Bearer ${key}"`],
      ),
  },
  {
    value: 'claude-desktop',
    label: 'Claude Desktop',
    where:
      'Settings, Developer, Edit Config opens claude_desktop_config.json: macOS ~/Library/Application Support/Claude, Windows %APPDATA%\\Claude, Linux ~/.config/Claude. Quit Claude Desktop and open it again afterwards. It starts a program that forwards to the address, which needs Node.',
    text: (url, key) =>
      json({
        mcpServers: {
          skillwright: {
            command: 'npx',
            args: [
              ...['-y', 'mcp-remote', url],
              ...(isPlainAndRemote(url) ? ['--allow-http'] : []),
              // On Windows an argument with a space arrives in pieces, so the space is in the environment.
              ...['--header', `Authorization:${placeholder('AUTH')}`],
            ],
            env: { AUTH: `Bearer ${key}` },
          },
        },
      }),
  },
  {
    value: 'cursor',
    label: 'Cursor',
    where: `In ~/.cursor/mcp.json (Windows: %USERPROFILE%\\.cursor\\mcp.json), or in .cursor/mcp.json of a project. Write ${placeholder('env:NAME')} for the key where others read the file.`,
    text: (url, key) => json({ mcpServers: { skillwright: { url, headers: headersOf(key) } } }),
  },
  {
    value: 'vs-code',
    label: 'VS Code',
    where:
      'In .vscode/mcp.json of a project, or for all of them by the command MCP: Open User Configuration. VS Code asks for the key when it first starts the server, and stores it encrypted.',
    text: (url) =>
      json({
        inputs: [
          {
            type: 'promptString',
            id: 'skillwright-key',
            description: 'API key of Skillwright',
            password: true,
          },
        ],
        servers: {
          skillwright: {
            type: 'http',
            url,
            headers: headersOf(placeholder('input:skillwright-key')),
          },
        },
      }),
  },
  {
    value: 'inspector',
    label: 'Inspector',
    where: 'Run this in a terminal: it lists the tools of the key.',
    text: (url, key) =>
      command(
        ...['npx -y @modelcontextprotocol/inspector --cli', url, '--transport http'],
        ...['--header', `"Authorization: Bearer ${key}"`, '--method tools/list'],
      ),
  },
];

/** `mcp-remote` takes an address without TLS on its own machine alone, unless it is allowed to. */
function isPlainAndRemote(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  return protocol === 'http:' && !['localhost', '127.0.0.1'].includes(hostname);
}
