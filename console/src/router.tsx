/**
 * The routes of the console, below `/console/o/<organization>`. Filters, page and tab are in the url, so that users
 * can share it. A page's code is loaded when it is first opened.
 */
import {
  createRootRoute,
  createRoute,
  createRouter,
  Navigate,
  Outlet,
  parseSearchWith,
  stringifySearchWith,
} from '@tanstack/react-router';
import { addressOf } from './api/organization.ts';
import { Missing, RouteProblem } from './shell/Missing.tsx';
import { Shell } from './shell/Shell.tsx';
import { lazyPage } from './ui/lazily.tsx';

/**
 * Reads the words that a page's url may have; the router removes all others from the url. `dialog` is the one that
 * is open on the page.
 */
const words =
  <Name extends string>(...names: Name[]) =>
  (given: Record<string, unknown>): { [K in Name]?: string } & { page?: number } => {
    const read: Record<string, unknown> = {};
    for (const name of names) {
      const value = given[name];
      if (typeof value === 'string' && value !== '') read[name] = value;
      else if (typeof value === 'number' || typeof value === 'boolean') read[name] = String(value);
    }
    const page = Number(given['page']);
    if (Number.isSafeInteger(page) && page > 1) read['page'] = page;
    return read as { [K in Name]?: string } & { page?: number };
  };

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing });
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  notFoundComponent: Missing,
});
const within = { getParentRoute: () => shell } as const;

const overview = createRoute({
  ...within,
  path: '/',
  validateSearch: words('window', 'chart'),
  component: lazyPage(async () => (await import('./pages/OverviewPage.tsx')).OverviewPage),
});
const skills = createRoute({
  ...within,
  path: '/skills',
  validateSearch: words('q'),
  component: lazyPage(async () => (await import('./pages/SkillsPage.tsx')).SkillsPage),
});
const skill = createRoute({
  ...within,
  path: '/skills/$category/$version/$name',
  /** `from` is a job whose input the form begins with. */
  validateSearch: words('tab', 'from'),
  component: lazyPage(async () => (await import('./pages/SkillPage.tsx')).SkillPage),
});
const connect = createRoute({
  ...within,
  path: '/connect',
  validateSearch: words('client'),
  component: lazyPage(async () => (await import('./pages/ConnectPage.tsx')).ConnectPage),
});
const jobs = createRoute({
  ...within,
  path: '/jobs',
  validateSearch: words(
    'status',
    'agent_id',
    'skill',
    'trigger_type',
    'conversation_id',
    'api_key_id',
    'user_id',
    'since',
  ),
  component: lazyPage(async () => (await import('./pages/JobsPage.tsx')).JobsPage),
});
const job = createRoute({
  ...within,
  path: '/jobs/$jobId',
  validateSearch: words('tab'),
  component: lazyPage(async () => (await import('./pages/JobPage.tsx')).JobPage),
});
const queue = createRoute({
  ...within,
  path: '/queue',
  /** Whose jobs: those of all organizations, or of the page's. */
  validateSearch: words('of'),
  component: lazyPage(async () => (await import('./pages/QueuePage.tsx')).QueuePage),
});
const approvals = createRoute({
  ...within,
  path: '/approvals',
  validateSearch: words('status', 'agent_id', 'job_id'),
  component: lazyPage(async () => (await import('./pages/ApprovalsPage.tsx')).ApprovalsPage),
});
const approval = createRoute({
  ...within,
  path: '/approvals/$approvalId',
  component: lazyPage(async () => (await import('./pages/ApprovalPage.tsx')).ApprovalPage),
});
const conversations = createRoute({
  ...within,
  path: '/conversations',
  validateSearch: words('status', 'agent_id', 'user_id', 'trigger_type'),
  component: lazyPage(
    async () => (await import('./pages/ConversationsPage.tsx')).ConversationsPage,
  ),
});
const conversation = createRoute({
  ...within,
  path: '/conversations/$conversationId',
  validateSearch: words(),
  component: lazyPage(async () => (await import('./pages/ConversationPage.tsx')).ConversationPage),
});
const agents = createRoute({
  ...within,
  path: '/agents',
  validateSearch: words('dialog'),
  component: lazyPage(async () => (await import('./pages/AgentsPage.tsx')).AgentsPage),
});
const agent = createRoute({
  ...within,
  path: '/agents/$agentId',
  /** `conversation` is the one that the chat goes on with; the others filter its memories. */
  validateSearch: words('tab', 'q', 'tag', 'user', 'whose', 'conversation', 'version'),
  component: lazyPage(async () => (await import('./pages/AgentPage.tsx')).AgentPage),
});
const memories = createRoute({
  ...within,
  path: '/memories',
  validateSearch: words('agent_id', 'q', 'tag', 'user', 'whose'),
  component: lazyPage(async () => (await import('./pages/MemoriesPage.tsx')).MemoriesPage),
});
const user = createRoute({
  ...within,
  path: '/users/$userId',
  component: lazyPage(async () => (await import('./pages/UserPage.tsx')).UserPage),
});
const schedules = createRoute({
  ...within,
  path: '/schedules',
  validateSearch: words('dialog'),
  component: lazyPage(async () => (await import('./pages/SchedulesPage.tsx')).SchedulesPage),
});
const schedule = createRoute({
  ...within,
  path: '/schedules/$scheduleId',
  /** `view` is how its calendar looks, `day` where. */
  validateSearch: words('tab', 'view', 'day'),
  component: lazyPage(async () => (await import('./pages/SchedulePage.tsx')).SchedulePage),
});
const webhooks = createRoute({
  ...within,
  path: '/webhooks',
  validateSearch: words('dialog'),
  component: lazyPage(async () => (await import('./pages/WebhooksPage.tsx')).WebhooksPage),
});
const webhook = createRoute({
  ...within,
  path: '/webhooks/$webhookId',
  validateSearch: words('delivery'),
  component: lazyPage(async () => (await import('./pages/WebhookPage.tsx')).WebhookPage),
});
const triggers = createRoute({
  ...within,
  path: '/triggers',
  validateSearch: words('dialog'),
  component: lazyPage(async () => (await import('./pages/TriggersPage.tsx')).TriggersPage),
});
const trigger = createRoute({
  ...within,
  path: '/triggers/$triggerId',
  validateSearch: words(),
  component: lazyPage(async () => (await import('./pages/TriggerPage.tsx')).TriggerPage),
});
const apiKeys = createRoute({
  ...within,
  path: '/api-keys',
  validateSearch: words('q', 'state', 'dialog'),
  component: lazyPage(async () => (await import('./pages/ApiKeysPage.tsx')).ApiKeysPage),
});
const apiKey = createRoute({
  ...within,
  path: '/api-keys/$keyId',
  component: lazyPage(async () => (await import('./pages/ApiKeyPage.tsx')).ApiKeyPage),
});
const mcpServers = createRoute({
  ...within,
  path: '/mcp-servers',
  validateSearch: words('dialog'),
  component: lazyPage(async () => (await import('./pages/McpServersPage.tsx')).McpServersPage),
});
const mcpServer = createRoute({
  ...within,
  path: '/mcp-servers/$name',
  component: lazyPage(async () => (await import('./pages/McpServerPage.tsx')).McpServerPage),
});
const openapiImports = createRoute({
  ...within,
  path: '/openapi-imports',
  validateSearch: words('dialog'),
  component: lazyPage(
    async () => (await import('./pages/OpenapiImportsPage.tsx')).OpenapiImportsPage,
  ),
});
const openapiImport = createRoute({
  ...within,
  path: '/openapi-imports/$name',
  component: lazyPage(
    async () => (await import('./pages/OpenapiImportPage.tsx')).OpenapiImportPage,
  ),
});
const accounts = createRoute({
  ...within,
  path: '/accounts',
  component: lazyPage(async () => (await import('./pages/AccountsPage.tsx')).AccountsPage),
});
/** Where authorization servers send the browser back to. */
const accountCallback = createRoute({
  ...within,
  path: '/oauth/callback/$server',
  component: lazyPage(
    async () => (await import('./pages/AccountCallbackPage.tsx')).AccountCallbackPage,
  ),
});
const system = createRoute({
  ...within,
  path: '/system',
  /** Whose usage is listed. */
  validateSearch: words('owner_kind', 'organization_id'),
  component: lazyPage(async () => (await import('./pages/SystemPage.tsx')).SystemPage),
});
/** Any other address: the menu stays. */
const elsewhere = createRoute({ ...within, path: '$', component: Missing });
const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: () => <Navigate to="/" />,
});

const routeTree = root.addChildren([
  signIn,
  shell.addChildren([
    ...[
      overview,
      skills,
      skill,
      jobs,
      job,
      queue,
      approvals,
      approval,
      conversations,
      conversation,
      agents,
      agent,
    ],
    ...[connect, memories, user, schedules, schedule, webhooks, webhook, triggers, trigger],
    ...[accounts, accountCallback, openapiImports, openapiImport],
    ...[apiKeys, apiKey, mcpServers, mcpServer, system, elsewhere],
  ]),
]);

/** The places of an organization. */
export const createPlaces = (organization: string) =>
  createRouter({
    basepath: addressOf(organization, ''),
    routeTree,
    search: { strict: true },
    // Words are texts: a user's id such as 1e3 is no number.
    parseSearch: parseSearchWith((text) => text),
    stringifySearch: stringifySearchWith(String),
    defaultPreload: 'intent',
    defaultErrorComponent: RouteProblem,
    scrollRestoration: true,
  });

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createPlaces>;
  }
}
