/** The skill registry, and the deprecation of versions (specification: Skill registry; docs/decisions/skills.md). */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { adminRefusals, apiRefusals } from '../../adapters/http/refusals.ts';
import { FilterText, SkillPath, Words } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { hasScopes } from '../../kernel/caller.ts';
import { timestamp } from '../../kernel/clock.ts';
import { limitsOf, ratesOf } from './limits.ts';
import type { Skill, SkillRegistry } from './registry.ts';
import type { SkillSettings } from './settings.ts';
import { FullSkill, IncludedParts, LeftOut, ListedSkill, listedExample } from './skills.schemas.ts';
import type { LeftOutSkill } from './sources/load-error.ts';

const tags = ['Skills'];
const security = [{ apiKey: [] }];
const adminSecurity = [{ adminBearer: [] }, { adminHeader: [] }];

export function skillRoutes(server: Server, skills: SkillRegistry, settings: SkillSettings): void {
  listSkillsRoute(server, skills);
  getSkillRoute(server, skills, settings);
}

/** `leftOut` returns the skills that this process left out when it loaded them. */
export function skillAdminRoutes(
  server: Server,
  skills: SkillRegistry,
  leftOut: () => readonly LeftOutSkill[],
): void {
  listLeftOutSkillsRoute(server, leftOut);
  listAllSkillsRoute(server, skills);
  getAnySkillRoute(server, skills);
  setDeprecatedRoute(server, skills, 'deprecate');
  setDeprecatedRoute(server, skills, 'activate');
}

/** A hook: an unknown skill is 404 before any other check (docs/decisions/order-of-checks.md). */
function requireSkill(skills: SkillRegistry) {
  return async (request: FastifyRequest) => {
    const { category, version, skillName } = request.params as Static<typeof SkillPath>;
    skills.active(callerOf(request).organizationId, category, version, skillName);
  };
}

/** The same for the administrator. */
function requireSkillAnywhere(skills: SkillRegistry) {
  return async (request: FastifyRequest) => {
    const { category, version, skillName } = request.params as Static<typeof SkillPath>;
    skills.registeredAnywhere(category, version, skillName);
  };
}

function listSkillsRoute(server: Server, skills: SkillRegistry): void {
  server.get(
    '/api/skills',
    {
      schema: {
        tags,
        security,
        operationId: 'listSkills',
        summary: 'List the active skills',
        querystring: Type.Object({
          category: Type.Optional(FilterText('Skills of this category.')),
          runnable: Type.Optional({
            ...Words(['true']),
            description: 'true: only the skills that the scopes of the key allow it to run.',
          }),
        }),
        response: {
          200: Type.Array(ListedSkill, {
            description: 'Active skills by category, name and version, without their schemas.',
            examples: [[listedExample]],
          }),
          ...apiRefusals(),
        },
      },
    },
    async (request, reply) => {
      const { category, runnable } = request.query;
      const { organizationId, scopes } = callerOf(request);
      const found = skills
        .list(organizationId, category)
        .filter((skill) => runnable === undefined || hasScopes(scopes, skill.requiredScopes))
        .map(skillSummary);
      return reply.header('x-total-count', found.length).send(found);
    },
  );
}

function getSkillRoute(server: Server, skills: SkillRegistry, settings: SkillSettings): void {
  server.get(
    '/api/skills/:category/:version/:skillName',
    {
      onRequest: requireSkill(skills),
      schema: {
        tags,
        security,
        operationId: 'getSkill',
        summary: 'Get an active skill with its schemas',
        params: SkillPath,
        querystring: IncludedParts,
        response: { 200: FullSkill, ...apiRefusals('skill_not_found') },
      },
    },
    async (request) => {
      const { category, version, skillName } = request.params;
      const { organizationId } = callerOf(request);
      const skill = skills.active(organizationId, category, version, skillName);
      const detail = skillDetail(skill, request.query);
      if (!skill.hasConfig) return detail;
      return { ...detail, config: await settings.show(organizationId, skill) };
    },
  );
}

function listLeftOutSkillsRoute(server: Server, leftOut: () => readonly LeftOutSkill[]): void {
  server.get(
    '/admin/left-out-skills',
    {
      schema: {
        tags,
        security: adminSecurity,
        operationId: 'listLeftOutSkills',
        summary: 'List the SKILL.md files that were left out as invalid',
        description:
          'Each SKILL.md that the answering process left out when it loaded the skills last. In a cluster ' +
          'the logs of the workers have the others.',
        response: {
          200: Type.Array(LeftOut, {
            description: 'Files in the order of their paths; empty if all are valid.',
            examples: [
              [
                {
                  file: '/skills/pdf/SKILL.md',
                  reason: 'name must be the name of its folder, "pdf", got "pdf-tools"',
                },
              ],
            ],
          }),
          ...adminRefusals(),
        },
      },
    },
    async (_request, reply) => {
      const files = [...leftOut()];
      return reply.header('x-total-count', files.length).send(files);
    },
  );
}

function listAllSkillsRoute(server: Server, skills: SkillRegistry): void {
  server.get(
    '/admin/skills',
    {
      schema: {
        tags,
        security: adminSecurity,
        operationId: 'listAllSkills',
        summary: 'List every version that was ever registered',
        description:
          'Includes inactive versions: deprecated, or no longer loaded by any process. ' +
          'See is_active.',
        response: {
          200: Type.Array(ListedSkill, {
            description: 'All versions by category, name and version, without their schemas.',
            examples: [[listedExample, { ...listedExample, version: 'v0.9', is_active: false }]],
          }),
          ...adminRefusals(),
        },
      },
    },
    async (_request, reply) => {
      const found = skills.listAll().map(skillSummary);
      return reply.header('x-total-count', found.length).send(found);
    },
  );
}

function getAnySkillRoute(server: Server, skills: SkillRegistry): void {
  server.get(
    '/admin/skills/:category/:version/:skillName',
    {
      onRequest: requireSkillAnywhere(skills),
      schema: {
        tags,
        security: adminSecurity,
        operationId: 'getAnySkill',
        summary: 'Get a version with its schemas, active or not',
        description: 'Without its settings, whose values differ from organization to organization.',
        params: SkillPath,
        querystring: IncludedParts,
        response: { 200: FullSkill, ...adminRefusals('skill_not_found') },
      },
    },
    async ({ params: { category, version, skillName }, query }) =>
      skillDetail(skills.registeredAnywhere(category, version, skillName), query),
  );
}

function setDeprecatedRoute(
  server: Server,
  skills: SkillRegistry,
  verb: 'deprecate' | 'activate',
): void {
  server.post(
    `/admin/skills/:category/:version/:skillName/${verb}`,
    {
      onRequest: requireSkillAnywhere(skills),
      schema: {
        tags,
        security: adminSecurity,
        operationId: `${verb}Skill`,
        summary: verb === 'deprecate' ? 'Deprecate a version' : 'Activate a version again',
        description: 'A deprecated version takes no new work; accepted jobs finish.',
        params: SkillPath,
        response: { 200: FullSkill, ...adminRefusals('skill_not_found') },
      },
    },
    async ({ params: { category, version, skillName } }) => {
      const deprecated = verb === 'deprecate';
      return skillDetail(await skills.setDeprecated(category, version, skillName, deprecated));
    },
  );
}

/** A skill as a list returns it. */
function skillSummary(skill: Skill) {
  return {
    id: skill.id,
    category: skill.category,
    skill_name: skill.name,
    version: skill.version,
    display_name: skill.displayName,
    description: skill.description,
    required_scopes: [...skill.requiredScopes],
    is_active: skill.isActive,
    created_at: timestamp(skill.createdAt),
    updated_at: timestamp(skill.updatedAt),
  };
}

/** A skill as a single read returns it, with its examples if the query asks for them. */
function skillDetail(skill: Skill, { include }: { include?: string } = {}) {
  return {
    ...skillSummary(skill),
    parameters_schema: skill.parameters as Record<string, unknown>,
    output_schema: skill.output as Record<string, unknown>,
    ...(include === undefined ? {} : { examples: [...skill.examples] }),
    ...limitsOnWire(skill),
  };
}

/** The limits that a skill has; what it has not is left out. */
function limitsOnWire({ concurrency, rate, slowsDown }: Skill) {
  const atATime = limitsOf(concurrency).map(({ limit, per }) => ({ limit, per }));
  const starts = ratesOf(rate).map(({ limit, perSeconds = 0, per }) => ({
    limit,
    per_seconds: perSeconds,
    per,
  }));
  return {
    ...(atATime.length > 0 && { concurrency: atATime }),
    ...(starts.length > 0 && { rate: starts }),
    ...(slowsDown && { slows_down: true }),
  };
}
