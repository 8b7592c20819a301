import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, dataDirectory, gate, play, stagedSkills, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

interface Listed {
  category: string;
  skill_name: string;
  version: string;
}

const nameOf = ({ category, version, skill_name }: Listed) =>
  `${category}/${version}/${skill_name}`;
const set = (skill: string, verb: 'deprecate' | 'activate') =>
  platform.admin('POST', `/admin/skills/${skill}/${verb}`);

/** What it is in lists: everything but the schemas. */
const listedFields = {
  id: anId,
  category: 'util',
  skill_name: 'echo',
  version: 'v1.0',
  display_name: 'Echo',
  description: expect.stringMatching(/\S/),
  required_scopes: ['util'],
  is_active: true,
  created_at: aTimestamp,
  updated_at: aTimestamp,
};

describe('GET /api/skills', () => {
  test('is an array of active skills with the documented fields, without schemas', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.get('/api/skills');

    expect(status).toBe(200);
    expect(body.find((skill: Listed) => nameOf(skill) === 'util/v1.0/echo')).toEqual(listedFields);
    for (const skill of body) {
      expect(Object.keys(skill).sort()).toEqual(Object.keys(listedFields).sort());
      expect(skill.is_active).toBe(true);
    }
    expect(headers.get('x-total-count')).toBe(String(body.length));
  });

  test('is ordered by category, name and version', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.get('/api/skills');

    expect(body.map(nameOf)).toEqual([
      'staged/v1.0/any',
      'staged/v1.0/asks-person',
      'staged/v1.0/chained',
      'staged/v1.0/charge',
      'staged/v1.0/effect',
      'staged/v1.0/errand',
      'staged/v1.0/family',
      'staged/v1.0/hasty',
      'staged/v1.0/listener',
      'staged/v1.0/memory',
      'staged/v1.0/order',
      'staged/v1.0/order-paid',
      'staged/v1.0/parallel',
      'staged/v1.0/play',
      'staged/v1.0/play-once',
      'staged/v1.0/shout',
      'staged/v1.0/strict',
      'staged/v1.0/sum',
      'staged/v1.0/vault',
      'staged/v1.9/versions',
      'staged/v1.10/versions',
      'staged/v2.0/versions',
      'util/v1.0/echo',
      'util/v1.0/wait',
    ]);
  });

  test('category narrows it; one that there is not gives an empty list', async () => {
    const tenant = await newTenant(platform);

    const util = await tenant.get('/api/skills?category=util');
    expect(util.body.map(nameOf)).toEqual(['util/v1.0/echo', 'util/v1.0/wait']);
    expect(util.headers.get('x-total-count')).toBe('2');
    for (const category of ['', 'Util', 'uti', 'util%20', '%25', '*', "'%20or%201=1", 'nope']) {
      const none = await tenant.get(`/api/skills?category=${category}`);
      expect({ status: none.status, body: none.body }).toEqual({ status: 200, body: [] });
      expect(none.headers.get('x-total-count')).toBe('0');
    }
  });

  test('a category given twice, or with a NUL, is refused', async () => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get('/api/skills?category=util&category=text'), 'category');
    expectInvalid(await tenant.get('/api/skills?category=a%00'), 'category');
  });

  test('has no pagination parameters: it is complete', async () => {
    const tenant = await newTenant(platform);

    expect((await tenant.get('/api/skills')).body).toHaveLength(24);
    expectInvalid(await tenant.get('/api/skills?limit=1&offset=1'), 'limit');
  });
});

test('runnable lists only the skills that the scopes of the key allow it to run', async () => {
  const util = await newTenant(platform, { scopes: ['util'] });
  const { body } = await util.get('/api/skills?runnable=true');
  const categories = new Set(body.map(({ category }: { category: string }) => category));
  expect([...categories]).toEqual(['util']);
  expectInvalid(await util.get('/api/skills?runnable=false'), 'runnable');
});

describe('GET /api/skills/:category/:version/:skillName', () => {
  test('is the full skill with its schemas', async () => {
    const tenant = await newTenant(platform);

    const { status, body } = await tenant.get('/api/skills/util/v1.0/echo');

    expect(status).toBe(200);
    expect(body).toEqual({
      ...listedFields,
      parameters_schema: {
        type: 'object',
        required: ['text'],
        additionalProperties: false,
        properties: { text: { type: 'string', description: expect.any(String) } },
      },
      output_schema: expect.objectContaining({ type: 'object' }),
    });
  });

  test('has the examples too when the request includes them', async () => {
    const tenant = await newTenant(platform);
    const path = '/api/skills/util/v1.0/echo';

    const { body } = await tenant.get(`${path}?include=examples`);

    const { examples, ...skill } = body;
    expect(examples).toEqual([{ input: { text: 'hello' }, output: { text: 'hello' } }]);
    expect(skill).toEqual((await tenant.get(path)).body);
    const asAdministrator = await platform.admin(
      'GET',
      `/admin/skills/util/v1.0/echo?include=examples`,
    );
    expect(asAdministrator.body).toEqual(body);
    expectInvalid(await tenant.get(`${path}?include=more`), 'include');
  });

  test('several versions of one skill coexist, each with an id of its own', async () => {
    const tenant = await newTenant(platform);

    const versions = await Promise.all(
      ['v1.9', 'v1.10', 'v2.0'].map((v) => tenant.get(`/api/skills/staged/${v}/versions`)),
    );

    expect(versions.map(({ body }) => body.version)).toEqual(['v1.9', 'v1.10', 'v2.0']);
    expect(new Set(versions.map(({ body }) => body.id)).size).toBe(3);
    const run = await tenant.run('staged/v1.10/versions', {});
    expect(run.body).toMatchObject({ output: 'v1.10', skill_version: 'v1.10' });
  });

  test('one that there is not is 404 skill_not_found', async () => {
    const tenant = await newTenant(platform);

    for (const path of [
      ...['nope/v1.0/echo', 'util/v1.0/nope', 'util/v2.0/echo', 'util/v1/echo', 'util/1.0/echo'],
      ...['util/v01.0/echo', 'util/v1.0/Echo', 'Util/v1.0/echo', 'util/V1.0/echo'],
      ...['util/v1.0/echo%20', '%20/%20/%20', `util/v1.0/${'x'.repeat(3_000)}`],
      ...['__proto__/v1.0/x', 'constructor/prototype/x', 'util/v1.0%2Fecho/x'],
    ]) {
      expectRefusal(await tenant.get(`/api/skills/${path}`), 404, 'skill_not_found');
    }
  });

  test('an unknown one is 404 before an invalid query is 400', async () => {
    const tenant = await newTenant(platform);

    for (const query of ['include=more', 'include[]=examples', 'more=1']) {
      const answer = await tenant.get(`/api/skills/util/v9.9/echo?${query}`);
      expectRefusal(answer, 404, 'skill_not_found');
      const asAdministrator = await platform.admin('GET', `/admin/skills/util/v9.9/echo?${query}`);
      expectRefusal(asAdministrator, 404, 'skill_not_found');
    }
  });

  test('one of a version that there is not names those that there are', async () => {
    const tenant = await newTenant(platform);
    const versions =
      'No active skill matches staged/v3.0/versions; active versions: v1.9, v1.10, v2.0';

    const shown = await tenant.get('/api/skills/staged/v3.0/versions');
    const run = await tenant.run('staged/v3.0/versions', {});
    const schedule = await tenant.post('/api/scheduled-jobs', {
      agent_id: 'default',
      skill_category: 'staged',
      skill_version: 'v3.0',
      skill_name: 'versions',
      cron_expression: '0 9 * * *',
    });
    const deprecation = await set('staged/v3.0/versions', 'deprecate');

    for (const { body } of [shown, run, schedule]) expect(body.message).toBe(versions);
    expect(deprecation.body.message).toBe(
      'No registered skill matches staged/v3.0/versions; registered versions: v1.9, v1.10, v2.0',
    );
  });

  test('a longer or shorter path is no route', async () => {
    const tenant = await newTenant(platform);

    for (const path of ['util', 'util/v1.0', 'util/v1.0/echo/x', 'util/v1.0/echo/']) {
      expectRefusal(await tenant.get(`/api/skills/${path}`), 404, 'not_found');
    }
  });
});

describe('GET /admin/skills', () => {
  test('is every version, active or not, by category, name and version, without schemas', async () => {
    const tenant = await newTenant(platform);
    const active = (await tenant.get('/api/skills')).body;
    const before = await platform.admin('GET', '/admin/skills');
    expect(before.body).toEqual(active);
    await set('staged/v1.10/versions', 'deprecate');

    try {
      const { status, body, headers } = await platform.admin('GET', '/admin/skills');

      expect(status).toBe(200);
      expect(body.map(nameOf)).toEqual(active.map(nameOf));
      expect(headers.get('x-total-count')).toBe(String(active.length));
      const inactive = body.filter(({ is_active }: { is_active: boolean }) => !is_active);
      expect(inactive.map(nameOf)).toEqual(['staged/v1.10/versions']);
      expect(Object.keys(inactive[0]).sort()).toEqual(Object.keys(listedFields).sort());
    } finally {
      await set('staged/v1.10/versions', 'activate');
    }
  });

  test('is for the administrator alone', async () => {
    const { key } = await newTenant(platform);

    for (const path of ['/admin/skills', '/admin/skills/util/v1.0/echo']) {
      expectRefusal(await platform.request('GET', path, { key }), 401, 'authentication_required');
    }
  });
});

describe('GET /admin/skills/:category/:version/:skillName', () => {
  test('is the skill as a client sees it while it is active', async () => {
    const tenant = await newTenant(platform);

    const { status, body } = await platform.admin('GET', '/admin/skills/util/v1.0/echo');

    expect(status).toBe(200);
    expect(body).toEqual((await tenant.get('/api/skills/util/v1.0/echo')).body);
  });

  test('is an inactive version with its schemas, too', async () => {
    const deprecated = await set('staged/v1.0/sum', 'deprecate');
    try {
      const { status, body } = await platform.admin('GET', '/admin/skills/staged/v1.0/sum');

      expect(status).toBe(200);
      expect(body).toEqual(deprecated.body);
      expect(body).toMatchObject({ is_active: false, parameters_schema: { type: 'array' } });
    } finally {
      await set('staged/v1.0/sum', 'activate');
    }
  });

  test('one that was never registered is 404 skill_not_found', async () => {
    for (const skill of ['util/v9.9/echo', 'nope/v1.0/echo', '__proto__/v1.0/x']) {
      const answer = await platform.admin('GET', `/admin/skills/${skill}`);
      expectRefusal(answer, 404, 'skill_not_found');
    }
  });
});

describe('POST /admin/skills/:category/:version/:skillName/deprecate', () => {
  // Each test has a version of its own to take out of use.
  test('answers 200; the version is inactive: neither listed nor found nor executable', async () => {
    const tenant = await newTenant(platform);
    const skill = 'staged/v1.9/versions';

    const answer = await set(skill, 'deprecate');

    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ version: 'v1.9', is_active: false });
    const listed = (await tenant.get('/api/skills')).body.map(nameOf);
    expect(listed).not.toContain(skill);
    expect(listed).toContain('staged/v2.0/versions');
    expectRefusal(await tenant.get(`/api/skills/${skill}`), 404, 'skill_not_found');
    expectRefusal(await tenant.post(`/api/${skill}`, {}), 404, 'skill_not_found');

    const again = await set(skill, 'activate');
    expect(again.status).toBe(200);
    expect(again.body).toMatchObject({ version: 'v1.9', is_active: true, id: answer.body.id });
    expect((await tenant.run(skill, {})).body).toMatchObject({ status: 'completed' });
  });

  test('twice is the same as once', async () => {
    const skill = 'staged/v1.0/sum';
    const first = await set(skill, 'deprecate');
    const second = await set(skill, 'deprecate');
    const third = await set(skill, 'activate');
    const fourth = await set(skill, 'activate');

    expect(second.body).toEqual(first.body);
    expect(fourth.body).toEqual(third.body);
    expect([first, second, third, fourth].map(({ status }) => status)).toEqual(Array(4).fill(200));
  });

  test('runs already accepted finish; a retry is new work and is refused', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const failed = await tenant.run(play, acting({ fail: { message: 'no', retryable: false } }));
    const steps = [{ until: end.path }, { fail: { message: 'once more' } }];
    const jobId = await tenant.start(play, { attempts: [steps, []], output: 'done' });
    await tenant.jobIn(jobId, 'active');

    await set(play, 'deprecate');
    try {
      end.open();

      const { body } = await tenant.jobIn(jobId, 'completed', 'failed');
      expect(body).toMatchObject({ status: 'completed', output: 'done', attempt: 2 });
      const retry = await tenant.post(`/api/jobs/${failed.body.job_id}/retry`);
      expectRefusal(retry, 404, 'skill_not_found');
    } finally {
      await set(play, 'activate');
    }
  });

  test('one that was never registered is 404 skill_not_found', async () => {
    for (const verb of ['deprecate', 'activate'] as const) {
      expectRefusal(await set('util/v9.9/echo', verb), 404, 'skill_not_found');
    }
  });

  test('stays over a restart', async () => {
    const environment = { DATA_DIR: dataDirectory() };
    const first = await startStaged({ environment });
    const tenant = await newTenant(first);
    const before = await tenant.get('/api/skills');
    await first.admin('POST', '/admin/skills/util/v1.0/wait/deprecate');
    await first.stop();

    const second = await startStaged({ environment });
    const after = await second.request('GET', '/api/skills', { key: tenant.key });
    await second.stop();

    expect(after.body).toEqual(
      before.body.filter((skill: Listed) => nameOf(skill) !== 'util/v1.0/wait'),
    );
  });
});

describe('a definition that vanished', () => {
  test('is inactive, not deleted, and is itself again when it comes back', async () => {
    const environment = { DATA_DIR: dataDirectory() };
    const first = await startStaged({ environment });
    const { key } = await newTenant(first);
    const before = await first.request('GET', '/api/skills/staged/v1.0/play', { key });
    await first.stop();

    const second = await startStaged({ environment, skillsDirs: stagedSkills.slice(0, 1) });
    const gone = await second.request('GET', '/api/skills/staged/v1.0/play', { key });
    const execution = await second.request('POST', `/api/${play}`, { key, body: acting() });
    const shown = await second.admin('GET', '/admin/skills/staged/v1.0/play');
    await second.stop();
    const third = await startStaged({ environment });
    const back = await third.request('GET', '/api/skills/staged/v1.0/play', { key });
    await third.stop();

    expectRefusal(gone, 404, 'skill_not_found');
    expectRefusal(execution, 404, 'skill_not_found');
    expect(shown.body).toEqual({ ...before.body, is_active: false, updated_at: aTimestamp });
    expect(back.body).toEqual({ ...before.body, updated_at: aTimestamp });
  });
});
