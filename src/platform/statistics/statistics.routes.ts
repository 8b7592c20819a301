/** `/api/statistics`, and the users of a skill version. */
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { SkillPath } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { StatisticsOfWindow, UsesOfSkill, WindowQuery } from './statistics.schemas.ts';
import type { Statistics } from './statistics.ts';

const security = [{ apiKey: [] }];

export function statisticsRoutes(server: Server, statistics: Statistics) {
  statisticsRoute(server, statistics);
  usesRoute(server, statistics);
}

function statisticsRoute(server: Server, statistics: Statistics) {
  const schema = {
    tags: ['Statistics'],
    security,
    operationId: 'getStatistics',
    summary: 'Get counts, durations and tokens of runs in the last hour or day',
    description: 'For the whole organization. A run is counted within about a second.',
    querystring: WindowQuery,
    response: { 200: StatisticsOfWindow, ...apiRefusals() },
  };
  server.get('/api/statistics', { schema }, (request) =>
    statistics.ofWindow(callerOf(request).organizationId, request.query.window),
  );
}

function usesRoute(server: Server, statistics: Statistics) {
  const schema = {
    tags: ['Skills'],
    security,
    operationId: 'getSkillUsages',
    summary: 'Get the users of a version of a skill',
    description:
      'Schedules, triggers and keys of the organization that use the version, also an ' +
      'inactive one. Check them before you deprecate it.',
    params: SkillPath,
    response: { 200: UsesOfSkill, ...apiRefusals('skill_not_found') },
  };
  /** An unknown skill is 404 before any other check (docs/decisions/order-of-checks.md). */
  const onRequest = async (request: FastifyRequest) => {
    const { category, version, skillName: name } = request.params as Static<typeof SkillPath>;
    statistics.findSkill(callerOf(request).organizationId, { category, version, name });
  };
  const options = { onRequest, schema };
  server.get('/api/skills/:category/:version/:skillName/usages', options, (request) => {
    const { category, version, skillName: name } = request.params;
    return statistics.usesOf(callerOf(request).organizationId, { category, version, name });
  });
}
