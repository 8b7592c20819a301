/** Remote skills, put together: their kinds, and the choice of who runs a skill. */

import { type AllowList, parseAllowList } from '../../adapters/egress/allow-list.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { Cipher } from '../../kernel/encryption.ts';
import { lazily } from '../../kernel/lazy.ts';
import { createAccounts } from '../../platform/remote-skills/accounts/accounts.ts';
import { forgetAccount } from '../../platform/remote-skills/change-organizations.ts';
import { createMcpKind } from '../../platform/remote-skills/mcp/mcp-kind.ts';
import { McpServers } from '../../platform/remote-skills/mcp/mcp-servers.ts';
import { OpenapiImports } from '../../platform/remote-skills/openapi/openapi-imports.ts';
import { createOpenapiKind } from '../../platform/remote-skills/openapi/openapi-kind.ts';
import { refreshSourceFor } from '../../platform/remote-skills/refresh.ts';
import { runRemoteSkill } from '../../platform/remote-skills/run-remote.ts';
import { scheduleRefresh } from '../../platform/remote-skills/schedule-refresh.ts';
import { RemoteSkills } from '../../platform/remote-skills/state.ts';
import type { Parts } from './parts.ts';

export function composeRemoteSkills(
  context: Pick<Context, 'database' | 'clock' | 'log'>,
  {
    config,
    version,
    encryptionKey,
  }: Pick<Parts, 'version' | 'encryptionKey'> & {
    readonly config: Pick<Config, 'skillsAllowCidrs' | 'mcpCommands' | 'publicUrl'>;
  },
  skills: SkillRegistry,
) {
  const { database, clock, log } = context;
  const allowed = parseAllowList(config.skillsAllowCidrs ?? '');
  const cipher = encryptionKey === null ? null : new Cipher(encryptionKey);
  const oauth = oauthClientOf(allowed);
  const accounts = createAccounts({
    ...{ database, clock, cipher, log },
    outside: {
      ...{ open: oauth.open, close: oauth.close },
      publicUrl: config.publicUrl,
      onChange: (sourceId, organizationId) => refreshSourceFor(remote, sourceId, organizationId),
      onDisconnect: (sourceId, organizationId) => forgetAccount(remote, sourceId, organizationId),
    },
  });
  const openapi = createOpenapiKind({ allowed, clock });
  const onToolsChanged = (sourceId: string) => scheduleRefresh(remote, sourceId);
  const remote: RemoteSkills = new RemoteSkills(context, {
    cipher,
    skills,
    kinds: new Map([
      ['mcp', createMcpKind({ allowed, version, accounts, onToolsChanged })],
      ['api', openapi],
    ]),
  });
  const rules = { allowed, areCommandsAllowed: config.mcpCommands === 'on' };
  return {
    remote,
    accounts,
    mcpServers: new McpServers(remote, accounts, rules),
    openapiImports: new OpenapiImports(remote, allowed, openapi.operationsOf),
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
  remote: RemoteSkills,
  skills: SkillRegistry,
): Pick<ExecutorPool, 'run'> {
  return {
    run(request, handlers) {
      const source = skills.sourceOf(request.skill);
      if (source === null) return executors.run(request, handlers);
      return runRemoteSkill(remote, source, request, handlers);
    },
  };
}
