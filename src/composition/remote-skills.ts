/** Remote skills, put together: their kinds, and the choice of who runs a skill. */
import type { Config } from '../config/config.ts';
import { parseAllowList } from '../egress/allow-list.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import { createCipher } from '../kernel/encryption.ts';
import { createMcpKind } from '../remote-skills/mcp/mcp-kind.ts';
import { createMcpServers } from '../remote-skills/mcp/mcp-servers.ts';
import { createOpenapiImports } from '../remote-skills/openapi/openapi-imports.ts';
import { createOpenapiKind } from '../remote-skills/openapi/openapi-kind.ts';
import { createRemoteSkills, type RemoteSkills } from '../remote-skills/remote-skills.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { Foundation, Parts } from './parts.ts';

export function composeRemoteSkills(
  { database, clock, log }: Pick<Foundation, 'database' | 'clock' | 'log'>,
  {
    config,
    version,
    encryptionKey,
  }: Pick<Parts, 'version' | 'encryptionKey'> & {
    readonly config: Pick<Config, 'skillsAllowCidrs' | 'mcpCommands'>;
  },
  skills: SkillRegistry,
) {
  const allowed = parseAllowList(config.skillsAllowCidrs ?? '');
  const remote = createRemoteSkills({
    ...{ database, clock, log, skills },
    cipher: encryptionKey === null ? null : createCipher(encryptionKey),
    kinds: new Map([
      ['mcp', createMcpKind({ allowed, version })],
      ['api', createOpenapiKind({ allowed, clock })],
    ]),
  });
  const skillsOf = (category: string) =>
    skills.listAll().filter((skill) => skill.category === category);
  const mcpServers = createMcpServers({
    remote,
    rules: { allowed, areCommandsAllowed: config.mcpCommands === 'on' },
    skillsOf,
  });
  return {
    remote,
    mcpServers,
    openapiImports: createOpenapiImports({ remote, allowed, skillsOf }),
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
