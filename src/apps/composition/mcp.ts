/** The Model Context Protocol, put behind HTTP. */
import type { FastifyRequest } from 'fastify';
import { guarded } from '../../adapters/http/guarded.ts';
import { Hosts } from '../../adapters/http/hosts.ts';
import type { Server } from '../../adapters/http/server.ts';
import { StreamAdmission } from '../../adapters/http/streams.ts';
import type { Admission } from '../../core/api-keys/admission.ts';
import { lazily } from '../../kernel/lazy.ts';
import { mcpMetadataRoutes, mcpRoutes, refuseHosts } from '../../platform/mcp/mcp.routes.ts';
import type { Routed } from './routes.ts';

export function registerMcp(
  target: Server,
  { parts, slices, state: { stopping }, http }: Routed,
  admission: Admission,
): void {
  const { context, skills, agents, agentChanges, approvals, files } = slices;
  const { execution, jobs } = slices.jobs;
  const { config, log } = context;
  const hosts = new Hosts(config.publicUrl, config.mcpHosts, config.corsOrigins);
  const isStillValid = (request: FastifyRequest) => admission.isStillValid(request);
  const admitted = new StreamAdmission(http.streams, isStillValid, stopping, log);
  const { version, executors, encryptionKey, adminSecret } = parts;
  const process = { version, executors, secret: encryptionKey ?? adminSecret, stopping };
  const served = { skills, agents, agentChanges, approvals, files, execution, jobs };
  // At its first use: the SDK takes 12 MiB and a tenth of a second, which a platform without such clients saves.
  const openEndpoint = lazily(async () => {
    const { McpEndpoint } = await import('../../platform/mcp/endpoint.ts');
    return new McpEndpoint(context, served, process);
  });
  mcpMetadataRoutes(target, config.publicUrl, hosts);
  guarded(target, '/mcp', refuseHosts(hosts, admission.hook), http.unmatched, (scope) =>
    mcpRoutes(scope, openEndpoint, { publicUrl: config.publicUrl, stopping }, admitted),
  );
}
