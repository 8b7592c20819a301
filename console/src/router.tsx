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
import type { ComponentType } from 'react';
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

/** A page below the shell, which its module exports as `name`. `search` are the words that its url may have. */
const page = <const Path extends string, Name extends string, Word extends string = never>(
  path: Path,
  load: () => Promise<Record<Name, ComponentType>>,
  name: NoInfer<Name>,
  ...search: Word[]
) =>
  createRoute({
    getParentRoute: () => shell,
    path,
    validateSearch: words(...search),
    component: lazyPage(async () => (await load())[name]),
  });

const overview = page(
  '/',
  () => import('./pages/OverviewPage.tsx'),
  'OverviewPage',
  'window',
  'chart',
);
const skills = page('/skills', () => import('./pages/SkillsPage.tsx'), 'SkillsPage', 'q');
/** `from` is a job whose input the form begins with. */
const skill = page(
  '/skills/$category/$version/$name',
  () => import('./pages/SkillPage.tsx'),
  'SkillPage',
  'tab',
  'from',
);
const connect = page('/connect', () => import('./pages/ConnectPage.tsx'), 'ConnectPage', 'client');
const jobs = page(
  '/jobs',
  () => import('./pages/JobsPage.tsx'),
  'JobsPage',
  'status',
  'agent_id',
  'skill',
  'trigger_type',
  'conversation_id',
  'api_key_id',
  'user_id',
  'since',
);
const job = page('/jobs/$jobId', () => import('./pages/JobPage.tsx'), 'JobPage', 'tab');
/** Whose jobs: those of all organizations, or of the page's. */
const queue = page('/queue', () => import('./pages/QueuePage.tsx'), 'QueuePage', 'of');
const approvals = page(
  '/approvals',
  () => import('./pages/ApprovalsPage.tsx'),
  'ApprovalsPage',
  'status',
  'agent_id',
  'job_id',
);
const approval = page(
  '/approvals/$approvalId',
  () => import('./pages/ApprovalPage.tsx'),
  'ApprovalPage',
);
const conversations = page(
  '/conversations',
  () => import('./pages/ConversationsPage.tsx'),
  'ConversationsPage',
  'status',
  'agent_id',
  'user_id',
  'trigger_type',
);
const conversation = page(
  '/conversations/$conversationId',
  () => import('./pages/ConversationPage.tsx'),
  'ConversationPage',
);
const agents = page('/agents', () => import('./pages/AgentsPage.tsx'), 'AgentsPage', 'dialog');
/** `conversation` is the one that the chat goes on with; the others filter its memories. */
const agent = page(
  '/agents/$agentId',
  () => import('./pages/AgentPage.tsx'),
  'AgentPage',
  'tab',
  'q',
  'tag',
  'user',
  'whose',
  'conversation',
  'version',
);
const memories = page(
  '/memories',
  () => import('./pages/MemoriesPage.tsx'),
  'MemoriesPage',
  'agent_id',
  'q',
  'tag',
  'user',
  'whose',
);
const user = page('/users/$userId', () => import('./pages/UserPage.tsx'), 'UserPage');
const schedules = page(
  '/schedules',
  () => import('./pages/SchedulesPage.tsx'),
  'SchedulesPage',
  'dialog',
);
/** `view` is how its calendar looks, `day` where. */
const schedule = page(
  '/schedules/$scheduleId',
  () => import('./pages/SchedulePage.tsx'),
  'SchedulePage',
  'tab',
  'view',
  'day',
);
const webhooks = page(
  '/webhooks',
  () => import('./pages/WebhooksPage.tsx'),
  'WebhooksPage',
  'dialog',
);
const webhook = page(
  '/webhooks/$webhookId',
  () => import('./pages/WebhookPage.tsx'),
  'WebhookPage',
  'delivery',
);
const triggers = page(
  '/triggers',
  () => import('./pages/TriggersPage.tsx'),
  'TriggersPage',
  'dialog',
);
const trigger = page(
  '/triggers/$triggerId',
  () => import('./pages/TriggerPage.tsx'),
  'TriggerPage',
);
const apiKeys = page(
  '/api-keys',
  () => import('./pages/ApiKeysPage.tsx'),
  'ApiKeysPage',
  'q',
  'state',
  'dialog',
);
const apiKey = page('/api-keys/$keyId', () => import('./pages/ApiKeyPage.tsx'), 'ApiKeyPage');
const mcpServers = page(
  '/mcp-servers',
  () => import('./pages/McpServersPage.tsx'),
  'McpServersPage',
  'dialog',
);
const mcpServer = page(
  '/mcp-servers/$name',
  () => import('./pages/McpServerPage.tsx'),
  'McpServerPage',
);
const openapiImports = page(
  '/openapi-imports',
  () => import('./pages/OpenapiImportsPage.tsx'),
  'OpenapiImportsPage',
  'dialog',
);
const openapiImport = page(
  '/openapi-imports/$name',
  () => import('./pages/OpenapiImportPage.tsx'),
  'OpenapiImportPage',
);
const accounts = page('/accounts', () => import('./pages/AccountsPage.tsx'), 'AccountsPage');
/** Where authorization servers send the browser back to. */
const accountCallback = page(
  '/oauth/callback/$server',
  () => import('./pages/AccountCallbackPage.tsx'),
  'AccountCallbackPage',
);
/** Whose usage is listed. */
const system = page(
  '/system',
  () => import('./pages/SystemPage.tsx'),
  'SystemPage',
  'owner_kind',
  'organization_id',
);
/** Any other address: the menu stays. */
const elsewhere = createRoute({
  getParentRoute: () => shell,
  path: '$',
  component: Missing,
});
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
