import { expect, test } from 'vitest';
import { isOutage, isRefusedWrite } from './postgres-errors.ts';

test.each([
  ['53300', true, false],
  ['53100', true, true],
  ['57P01', true, false],
  ['58030', true, true],
  ['53200', false, false],
  ['23505', false, false],
])('SQLSTATE %s: an outage %s, and refused as the next write is %s', (code, outage, refused) => {
  const error = Object.assign(new Error('refused'), { code });

  expect([isOutage(error), isRefusedWrite(error)]).toEqual([outage, refused]);
});
