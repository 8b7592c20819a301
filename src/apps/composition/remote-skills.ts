/** Remote skills, put together: their kinds, and the choice of who runs a skill. */

import { parseAllowList } from '../../adapters/egress/allow-list.ts';
import type { Context } from '../../core/context/context.ts';
import type { RunStarter } from '../../core/executors/pool.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { Cipher } from '../../kernel/encryption.ts';
import { Lazy } from '../../kernel/lazy.ts';
import { Accounts } from '../../platform/remote-skills/accounts/accounts.ts';
import { AccountTokens } from '../../platform/remote-skills/accounts/tokens.ts';
import { McpKind } from '../../platform/remote-skills/mcp/mcp-kind.ts';
import { McpServers } from '../../platform/remote-skills/mcp/mcp-servers.ts';
import { OpenapiImports } from '../../platform/remote-skills/openapi/openapi-imports.ts';
import { OpenapiKind } from '../../platform/remote-skills/openapi/openapi-kind.ts';
import type { RemoteKind } from '../../platform/remote-skills/remote-kind.ts';
import { runRemoteSkill } from '../../platform/remote-skills/run-remote.ts';
import { RemoteSkills } from '../../platform/remote-skills/state.ts';
import type { Parts } from './parts.ts';

export function composeRemoteSkills(
  context: Context,
  { version, encryptionKey }: Parts,
  skills: SkillRegistry,
) {
  const { config, clock } = context;
  const allowed = parseAllowList(config.skillsAllowCidrs ?? '');
  const cipher = encryptionKey === null ? null : new Cipher(encryptionKey);
  const oauth = new Lazy(async () => {
    const { OauthClient } = await import('../../platform/remote-skills/accounts/oauth-client.ts');
    return new OauthClient(allowed);
  });
  const tokens = new AccountTokens(context, cipher, oauth);
  const kinds = new Map<string, RemoteKind>();
  const remote = new RemoteSkills(context, { cipher, skills, kinds });
  const openapi = new OpenapiKind(allowed, clock);
  const mcp = new McpKind(allowed, version, tokens, remote);
  for (const kind of [mcp, openapi]) kinds.set(kind.kind, kind);
  const accounts = new Accounts(context, remote, oauth);
  const rules = { allowed, areCommandsAllowed: config.mcpCommands === 'on' };
  return {
    remote,
    accounts,
    mcpServers: new McpServers(remote, accounts, rules),
    openapiImports: new OpenapiImports(remote, allowed, openapi),
  };
}

/** Runs the skills of services outside by calls, and all others in the executors. */
export function runnersOf(
  executors: RunStarter,
  remote: RemoteSkills,
  skills: SkillRegistry,
): RunStarter {
  return {
    run(request, handlers) {
      const source = skills.sourceOf(request.skill);
      if (source === null) return executors.run(request, handlers);
      return runRemoteSkill(remote, source, request, handlers);
    },
  };
}
