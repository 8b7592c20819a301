/** `/admin/organizations/:organizationId/weight`: how many slots an organization gets beside others. */
import { Type } from 'typebox';
import { lookUp } from '../../../adapters/http/look-up.ts';
import { adminRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { Slug } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { type Weights, weightMax } from './weights.ts';

const path = '/admin/organizations/:organizationId/weight';
const operation = {
  tags: ['Queue'],
  security: [{ adminBearer: [] }, { adminHeader: [] }] as Record<string, string[]>[],
  params: Type.Object({
    organizationId: Type.String({ description: 'The id of the organization.' }),
  }),
};
const weight = Type.Integer({
  minimum: 1,
  maximum: weightMax,
  description:
    'Its share of the slots beside other organizations that wait: with 2 it gets twice as many as one with 1, the default.',
});
const NewWeight = Type.Object(
  { weight },
  { title: 'NewWeight', additionalProperties: false, examples: [{ weight: 2 }] },
);
const Weight = Type.Object(
  { organization_id: Slug, weight },
  { title: 'OrganizationWeight', examples: [{ organization_id: 'acme', weight: 2 }] },
);

export function weightRoutes(server: Server, weights: Weights) {
  const onRequest = lookUp('organizationId', (id) => weights.find(id));
  const getSchema = {
    ...operation,
    operationId: 'getOrganizationWeight',
    summary: 'Get the weight of an organization in turns',
    response: { 200: Weight, ...adminRefusals('not_found') },
  };
  server.get(path, { onRequest, schema: getSchema }, async ({ params: { organizationId } }) => ({
    organization_id: organizationId,
    weight: await weights.find(organizationId),
  }));
  const setSchema = {
    ...operation,
    operationId: 'setOrganizationWeight',
    summary: 'Set the weight of an organization in turns',
    description: 'All processes follow it within seconds. Runs under way are not interrupted.',
    body: NewWeight,
    response: { 200: Weight, ...adminRefusals('not_found', ...bodyRefusals) },
  };
  server.put(path, { onRequest, schema: setSchema }, async ({ params, body }) => {
    await weights.set(params.organizationId, body.weight);
    return { organization_id: params.organizationId, weight: body.weight };
  });
}
