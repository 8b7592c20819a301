import { expect, test } from 'vitest';
import { limitTexts } from './limits.ts';

test('limits are shown in words, those of whom they count too', () => {
  const texts = limitTexts({
    concurrency: [{ limit: 1, per: 'user' }],
    rate: [
      { limit: 10, per_seconds: 1, per: 'platform' },
      { limit: 1000, per_seconds: 3600, per: 'organization' },
    ],
    slows_down: true,
  });

  expect(texts).toEqual([
    '1 run at a time per user',
    '10 runs in a second',
    '1,000 runs in 3,600 seconds per organization',
    'a pause after a refusal by a service',
  ]);
  expect(limitTexts({})).toEqual([]);
});
