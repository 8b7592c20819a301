/**
 * The order in which a newcomer needs the guides: the menu, and where "next" leads. It imports no types of
 * VitePress, which would bring those of React into the program that checks the documents.
 */

/** What VitePress takes as an item of its menu. */
interface Item {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: Item[];
}

type Group = readonly [title: string, pages: readonly (readonly [title: string, page: string])[]];

const groups: readonly Group[] = [
  [
    'Start',
    [
      ['What it is', '/'],
      ['Start a platform', '/start'],
      ['Your first skill', '/first-skill'],
    ],
  ],
  [
    'Write skills',
    [
      ['Skills', '/skills'],
      ['Skills as prose', '/skill-md'],
      ['Test skills', '/testing'],
    ],
  ],
  [
    'Call skills',
    [
      ['The client', '/client'],
      ['Python and Go', '/call-it'],
      ['The command line', '/cli'],
      ['As tools, by MCP', '/mcp'],
      ['Outside servers as skills', '/mcp-servers'],
      ['OpenAPI documents as skills', '/openapi-imports'],
    ],
  ],
  [
    'Agents',
    [
      ['Agents that think', '/agents'],
      ['Agents: reference', '/agents-reference'],
      ['Guards', '/guards'],
      ['A chat in your product', '/chat'],
      ['What was sent', '/prompts'],
      ['When it fails', '/when-it-fails'],
      ['Memory', '/memories'],
      ['Files', '/files'],
      ['Tokens and budgets', '/usage'],
    ],
  ],
  [
    'Runs by themselves',
    [
      ['Runs that wait', '/durable'],
      ['Schedules', '/schedules'],
      ['Triggers', '/triggers'],
      ['Webhooks', '/webhooks'],
    ],
  ],
  [
    'Settings and console',
    [
      ['Settings of skills', '/skills#settings-and-secrets'],
      ['Credentials for providers', '/credentials'],
      ['The console', '/console'],
      ['Statistics', '/statistics'],
    ],
  ],
  [
    'Production',
    [
      ['Configuration', '/configuration'],
      ['Operations', '/operations'],
      ['What input can cost', '/security'],
      ['Backup', '/backup'],
      ['Cluster', '/cluster'],
      ['Fault tests', '/chaos'],
      ['Performance', '/performance'],
      ['Compared with others', '/compared'],
      ['Query plans', '/queries'],
    ],
  ],
];

const decisions = [
  ['Skills', 'skills'],
  ['Jobs', 'jobs'],
  ['Conversations', 'conversations'],
  ['Agents', 'agents'],
  ['Models', 'models'],
  ['Memories', 'memories'],
  ['Search of memories', 'memory-search'],
  ['Runs that wait', 'runs-that-wait'],
  ['Schedules', 'schedules'],
  ['Triggers', 'triggers'],
  ['Webhooks', 'webhooks'],
  ['API keys', 'api-keys'],
  ['Organizations', 'organizations'],
  ['Order of checks', 'order-of-checks'],
  ['JSON and lists', 'json-and-lists'],
  ['Limits', 'limits'],
  ['Health and metrics', 'health-and-metrics'],
  ['The PostgreSQL pipeline', 'postgres-pipeline'],
  ['Packages', 'dependencies'],
  ['Removed', 'removed'],
] as const;

export const sidebar: Item[] = [
  ...groups.map(([text, pages]) => ({
    text,
    items: pages.map(([title, link]) => ({ text: title, link })),
  })),
  {
    text: 'Reference',
    items: [
      { text: 'The API', link: '/api' },
      { text: 'Environment variables', link: '/configuration' },
      { text: 'Commands', link: '/cli' },
      { text: 'Decisions', link: '/decisions/', collapsed: true, items: decisions.map(decision) },
    ],
  },
];

function decision([text, name]: readonly [string, string]): Item {
  return { text, link: `/decisions/${name}` };
}
