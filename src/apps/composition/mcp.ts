/** The Model Context Protocol, put behind HTTP. */
import {
  type ApiKeyAdmission,
  apiKeyHook,
  isStillAdmitted,
  keyOrBearer,
} from '../../adapters/http/authenticate.ts';
import { guarded } from '../../adapters/http/guarded.ts';
import type { Server } from '../../adapters/http/server.ts';
import { createStreams, type OpenStreams } from '../../adapters/http/streams.ts';
import { beginning, jobStream } from '../../core/jobs/stream.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { PlatformError } from '../../kernel/errors.ts';
import { createShortCache } from '../../kernel/short-cache.ts';
import { createHosts } from '../../platform/mcp/hosts.ts';
import {
  type McpRoutesDeps,
  mcpMetadataRoutes,
  mcpRoutes,
  refuseHosts,
} from '../../platform/mcp/mcp.routes.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

export interface McpParts {
  readonly parts: Pick<
    Parts,
    'adminSecret' | 'config' | 'database' | 'encryptionKey' | 'executors' | 'log' | 'version'
  >;
  readonly slices: Slices;
  readonly clock: Clock;
  /** What admits requests to the API. Sessions of the console are not admitted: browsers send them by themselves. */
  readonly admission: Omit<ApiKeyAdmission, 'sessions' | 'keyOf'>;
  readonly streams: OpenStreams;
  readonly unmatched: (method: string, url: string) => PlatformError;
  readonly stopping: AbortSignal;
}

const dayMs = 24 * 60 * 60 * 1000;
const noSessions = { credentials: async () => null };

export function registerMcp(target: Server, mcp: McpParts): void {
  const { config } = mcp.parts;
  const hosts = createHosts(config.publicUrl, config.mcpHosts, config.corsOrigins);
  const deps = depsOf(mcp);
  const keyHook = apiKeyHook({ ...mcp.admission, sessions: noSessions, keyOf: keyOrBearer });
  mcpMetadataRoutes(target, deps, hosts);
  guarded(target, '/mcp', refuseHosts(hosts, keyHook), mcp.unmatched, (scope) =>
    mcpRoutes(scope, deps),
  );
}

/** How long the folders that a process without skills has found are kept. */
const foldersMs = 30_000;

/**
 * The folders of the skills that this process has loaded from a SKILL.md. A process without the role `worker` has loaded
 * none, and looks for them in its own SKILLS_DIR.
 */
function foldersOf(
  { executors, config }: McpParts['parts'],
  clock: Clock,
): () => Promise<ReadonlyMap<string, string>> {
  if (executors !== null) {
    return async () =>
      new Map(executors.definitions.flatMap(({ key, folder }) => (folder ? [[key, folder]] : [])));
  }
  const found = createShortCache<ReadonlyMap<string, string>>(clock, foldersMs, 1);
  const dirs = config.skillsDir === null ? [] : [config.skillsDir];
  const find = async () =>
    (await import('../../core/skills/sources/prose-folders.ts')).findProseFolders(dirs);
  return async () => found.get('') ?? found.read('', find);
}

function depsOf({ parts, slices, clock, admission, streams, stopping }: McpParts): McpRoutesDeps {
  const { config, database, log } = parts;
  const { agents, agentChanges, approvals, skills } = slices;
  const { execution, feed, jobs } = slices.jobs;
  return {
    list: { skills, agents, agentChanges },
    calls: {
      execution,
      jobs,
      approvals,
      openStream: (organizationId, jobId, signal) =>
        jobStream({ database, feed }, organizationId, jobId, beginning, signal),
    },
    process: { version: parts.version, log, stopping },
    secret: parts.encryptionKey ?? parts.adminSecret,
    prose: { clock, folders: foldersOf(parts, clock) },
    keptMs: config.retentionDays * dayMs,
    publicUrl: config.publicUrl,
    beginStream: createStreams({
      streams,
      isAdmitted: (request) => isStillAdmitted(request, admission.verify, noSessions, keyOrBearer),
      stopping,
      log,
    }),
  };
}
