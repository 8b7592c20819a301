/** Remote skills, put together: their kinds, and the choice of who runs a skill. */

import { type AllowList, parseAllowList } from '../../adapters/egress/allow-list.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { Cipher } from '../../kernel/encryption.ts';
import { lazily } from '../../kernel/lazy.ts';
import { createAccounts } from '../../platform/remote-skills/accounts/accounts.ts';
import { createMcpKind } from '../../platform/remote-skills/mcp/mcp-kind.ts';
import { createMcpServers } from '../../platform/remote-skills/mcp/mcp-servers.ts';
import { createOpenapiImports } from '../../platform/remote-skills/openapi/openapi-imports.ts';
import { createOpenapiKind } from '../../platform/remote-skills/openapi/openapi-kind.ts';
import {
  createRemoteSkills,
  type RemoteSkills,
} from '../../platform/remote-skills/remote-skills.ts';
import type { Parts } from './parts.ts';

export function composeRemoteSkills(
  { database, clock, log }: Pick<Context, 'database' | 'clock' | 'log'>,
  {
    config,
    version,
    encryptionKey,
  }: Pick<Parts, 'version' | 'encryptionKey'> & {
    readonly config: Pick<Config, 'skillsAllowCidrs' | 'mcpCommands' | 'publicUrl'>;
  },
  skills: SkillRegistry,
) {
  const allowed = parseAllowList(config.skillsAllowCidrs ?? '');
  const cipher = encryptionKey === null ? null : new Cipher(encryptionKey);
  const oauth = oauthClientOf(allowed);
  const accounts = createAccounts({
    ...{ database, clock, cipher, log },
    outside: {
      ...{ open: oauth.open, close: oauth.close },
      publicUrl: config.publicUrl,
      onChange: (sourceId, organizationId) => remote.refreshFor(sourceId, organizationId),
      onDisconnect: (sourceId, organizationId) => remote.forgetAccount(sourceId, organizationId),
    },
  });
  const openapi = createOpenapiKind({ allowed, clock });
  const onToolsChanged = (sourceId: string) => remote.scheduleRefresh(sourceId);
  const remote: RemoteSkills = createRemoteSkills({
    base: { database, clock, log },
    ...{ skills, cipher },
    kinds: new Map([
      ['mcp', createMcpKind({ allowed, version, accounts, onToolsChanged })],
      ['api', openapi],
    ]),
  });
  const skillsOf = (category: string) =>
    skills.listAll().filter((skill) => skill.category === category);
  const mcpServers = createMcpServers({
    ...{ remote, accounts },
    rules: { allowed, areCommandsAllowed: config.mcpCommands === 'on' },
    skillsOf,
  });
  return {
    ...{ remote, accounts },
    mcpServers,
    openapiImports: createOpenapiImports({
      ...{ remote, allowed, skillsOf },
      operationsOf: openapi.operationsOf,
    }),
  };
}

/** What asks authorization servers, loaded at its first use. */
function oauthClientOf(allowed: AllowList) {
  let isOpen = false;
  const load = lazily(async () =>
    (await import('../../platform/remote-skills/accounts/oauth-client.ts')).createOauthClient({
      allowed,
    }),
  );
  return {
    open() {
      isOpen = true;
      return load();
    },
    async close() {
      if (isOpen) await (await load()).close();
    },
  };
}

/** Runs the skills of services outside by calls, and all others in the executors. */
export function runnersOf(
  executors: Pick<ExecutorPool, 'run'>,
  remote: Pick<RemoteSkills, 'run'>,
  skills: Pick<SkillRegistry, 'sourceOf'>,
): Pick<ExecutorPool, 'run'> {
  return {
    run(request, handlers) {
      const source = skills.sourceOf(request.skill);
      if (source === null) return executors.run(request, handlers);
      return remote.run(source, request, handlers);
    },
  };
}
