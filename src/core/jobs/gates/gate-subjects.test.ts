import { expect, test } from 'vitest';
import {
  limitOfAgent,
  limitOfKey,
  limitOfOrganization,
  pauseOfAgent,
  pauseOfOrganization,
  pauseOfSkill,
} from '../../limits/limit-names.ts';
import { limitInWords, limitNameOf, subjectOf, withoutOtherKeys } from './gate-subjects.ts';
import { gatesOf, pauseAfterRefusal } from './gates.ts';

const work = {
  organization_id: 'acme',
  agent_id: 'reader',
  api_key_id: 'k1',
  user_id: 'u1',
  skill_category: 'web',
  skill_name: 'fetch',
  skill_version: 'v1.0',
};

test('a limit of a skill is one reason for all users', () => {
  const [gate] = gatesOf([{ limit: 1, per: 'user' }], work);
  const limit = limitNameOf(gate?.name ?? '');

  expect(limit).toBe('concurrency of web/v1.0/fetch per user');
  expect(limitInWords(limit)).toBe(limit);
  expect(subjectOf(limit)).toEqual({ type: 'skill', id: 'web/v1.0/fetch', organizationId: null });
});

test.each([
  [pauseOfSkill('web/v1.0/fetch'), 'pause of web/v1.0/fetch', 'skill', 'web/v1.0/fetch', null],
  [
    pauseAfterRefusal('web/v1.0/fetch'),
    'pause after a refusal of web/v1.0/fetch',
    'skill',
    'web/v1.0/fetch',
    null,
  ],
  [pauseOfOrganization('acme'), 'pause of organization acme', 'organization', 'acme', 'acme'],
  [
    limitOfOrganization('acme'),
    'max_concurrency of organization acme',
    'organization',
    'acme',
    'acme',
  ],
  [
    pauseOfAgent('acme', 'reader'),
    'pause of agent queue reader of acme',
    'agent',
    'reader',
    'acme',
  ],
  [
    limitOfAgent('acme', 'reader'),
    'max_concurrency of agent reader of acme',
    'agent',
    'reader',
    'acme',
  ],
  [limitOfKey('k1'), 'max_concurrency of API key k1', 'api_key', 'k1', null],
])('%s is named with whose it is', (gate, words, type, id, organizationId) => {
  expect(limitInWords(limitNameOf(gate))).toBe(words);
  expect(subjectOf(limitNameOf(gate))).toEqual({ type, id, organizationId });
});

test('a key is shown to itself alone', () => {
  const gate = limitOfKey('k1');

  expect(withoutOtherKeys(gate, 'k1')).toBe(gate);
  expect(withoutOtherKeys(gate, 'k2')).toBe('max_concurrency of API key');
  expect(withoutOtherKeys(limitOfOrganization('acme'), 'k2')).toBe(limitOfOrganization('acme'));
});
