import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTurn } from '../support/scripted-provider.ts';
import {
  newThinker,
  startThinkers,
  type Thinkers,
  thinkersSkills,
  toolNamed,
} from '../support/thinkers.ts';

const things = ['invoice', 'customer', 'ticket', 'shipment', 'contract', 'server', 'holiday'];
const forms = ['create', 'list', 'delete', 'update', 'archive', 'export', 'share'];

let world: Thinkers;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'skillwright-many-'));
  for (const thing of things)
    for (const form of forms) {
      const skill = {
        category: 'office',
        name: `${form}-${thing}`,
        version: 'v1.0',
        displayName: `${form} ${thing}`,
        description: `Can ${form} one ${thing} of the office.`,
        parameters: { type: 'object' },
        output: {},
        timeoutMs: 5_000,
      };
      writeFileSync(
        join(folder, `${form}-${thing}.ts`),
        `import { defineSkill } from 'skillwright';
export default defineSkill({ ...${JSON.stringify(skill)}, run: async () => '${form} ${thing}: done' });
`,
      );
    }
  world = await startThinkers({ skillsDirs: [...thinkersSkills, folder] });
});
afterAll(async () => {
  await world.stop();
  rmSync(folder, { recursive: true, force: true });
});

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;
const own = ['find_tools', 'recall', 'read_result'];
const finding = (query: string) => ({
  toolCalls: [{ name: 'find_tools', input: { query, limit: 1 } }],
});
const exporting = toolNamed('office/v1.0/export-contract');
const listing = toolNamed('office/v1.0/list-customer');

test('of more than 40 skills a model finds the tool it needs, calls it, and keeps it', async () => {
  const { task, steps } = await newThinker(world.platform, { skills: ['office/*'] });
  const before = soFar();
  world.provider.script(
    inTurn(
      finding('exports contracts'),
      { toolCalls: [{ name: exporting, input: {} }] },
      { text: 'Exported.' },
      finding('listing our customers'),
      { text: 'Listed.' },
      { text: 'Still there.' },
    ),
  );

  const job = await task('Export the contract');
  const again = { 'x-conversation-id': job.conversation_id };
  await task('List the customers', {}, again);
  await task('And now?', {}, again);

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Exported.' } });
  const requests = since(before);
  expect(requests.map(({ tools }) => tools)).toEqual([
    own,
    [...own, exporting],
    [...own, exporting],
    [...own, exporting],
    [...own, exporting, listing],
    [...own, exporting, listing],
  ]);
  expect(JSON.parse(requests[1]?.toolResults[0] ?? '')).toEqual({
    tools: [{ name: exporting, description: 'Can export one contract of the office.' }],
  });
  expect(requests[2]?.toolResults).toEqual(['export contract: done']);
  expect(await steps(job.job_id)).toMatchObject([
    { kind: 'model' },
    { kind: 'tool', name: 'find_tools', status: 'completed' },
    { kind: 'model' },
    { kind: 'tool', name: 'office/v1.0/export-contract', status: 'completed' },
    { kind: 'model' },
  ]);
});

test('what was found is offered again when the run was unloaded', async () => {
  const fields = { skills: ['office/*'], approvals: ['office/*'] };
  const { begin, get, post, jobIn } = await newThinker(world.platform, fields);
  const before = soFar();
  const calling = { toolCalls: [{ name: exporting, input: {} }] };
  world.provider.script(inTurn(finding('exports contracts'), calling, { text: 'Exported.' }));
  const jobId = await begin('Export the contract');
  await jobIn(jobId, 'waiting');

  const { body } = await get(`/api/approvals?status=pending&job_id=${jobId}`);
  await post(`/api/approvals/${body.data[0].approval_id}/approve`, {});

  const { body: job } = await jobIn(jobId, 'completed', 'failed');
  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Exported.' } });
  expect(since(before).at(-1)?.tools).toEqual([...own, exporting]);
  expect(since(before)).toHaveLength(3);
});
