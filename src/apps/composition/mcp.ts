/** The Model Context Protocol, put behind HTTP. */
import type { FastifyRequest } from 'fastify';
import { guarded } from '../../adapters/http/guarded.ts';
import { Hosts } from '../../adapters/http/hosts.ts';
import type { Server } from '../../adapters/http/server.ts';
import { StreamAdmission } from '../../adapters/http/streams.ts';
import type { Admission } from '../../core/api-keys/admission.ts';
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
  mcpMetadataRoutes(target, config.publicUrl, hosts);
  guarded(target, '/mcp', refuseHosts(hosts, admission.hook), http.unmatched, (scope) =>
    mcpRoutes(scope, context, served, process, admitted),
  );
}
