/** The Model Context Protocol, put behind HTTP. */
import {
  type ApiKeyAdmission,
  apiKeyHook,
  isStillAdmitted,
  keyOrBearer,
} from '../../adapters/http/authenticate.ts';
import { guarded } from '../../adapters/http/guarded.ts';
import { Hosts } from '../../adapters/http/hosts.ts';
import type { Server } from '../../adapters/http/server.ts';
import { type OpenStreams, StreamAdmission } from '../../adapters/http/streams.ts';
import type { PlatformError } from '../../kernel/errors.ts';
import { LazyEndpoint } from '../../platform/mcp/lazy-endpoint.ts';
import { mcpMetadataRoutes, mcpRoutes, refuseHosts } from '../../platform/mcp/mcp.routes.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

export interface McpParts {
  readonly parts: Parts;
  readonly slices: Slices;
  /** What admits requests to the API. Sessions of the console are not admitted: browsers send them by themselves. */
  readonly admission: Omit<ApiKeyAdmission, 'sessions' | 'keyOf'>;
  readonly streams: OpenStreams;
  readonly unmatched: (method: string, url: string) => PlatformError;
  readonly stopping: AbortSignal;
}

const noSessions = { credentials: async () => null };

export function registerMcp(target: Server, mcp: McpParts): void {
  const { parts, slices, admission, streams, stopping } = mcp;
  const { context, skills, agents, agentChanges, approvals } = slices;
  const { execution, jobs } = slices.jobs;
  const { config, log } = context;
  const hosts = new Hosts(config.publicUrl, config.mcpHosts, config.corsOrigins);
  const keyHook = apiKeyHook({ ...admission, sessions: noSessions, keyOf: keyOrBearer });
  const admitted = new StreamAdmission(
    streams,
    (request) => isStillAdmitted(request, admission.verify, noSessions, keyOrBearer),
    stopping,
    log,
  );
  const { version, executors, encryptionKey, adminSecret } = parts;
  const process = { version, executors, secret: encryptionKey ?? adminSecret, stopping };
  const served = { skills, agents, agentChanges, approvals, execution, jobs };
  mcpMetadataRoutes(target, config.publicUrl, hosts);
  guarded(target, '/mcp', refuseHosts(hosts, keyHook), mcp.unmatched, (scope) =>
    mcpRoutes(scope, new LazyEndpoint(context, served, process), admitted),
  );
}
