import { describe, expect, test } from 'vitest';
import { Slots } from './slots.ts';

describe('slots', () => {
  test('are as many as were asked for', () => {
    const slots = new Slots(2);

    expect([slots.reserveNow(), slots.reserveNow(), slots.reserveNow()]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('are free again when their row leaves or the reservation is released', () => {
    const slots = new Slots(1);
    slots.reserveNow();
    slots.occupy('row');
    expect(slots.isFree()).toBe(false);
    slots.leave('row');
    expect(slots.reserveNow()).toBe(true);
    slots.release();
    expect(slots.isFree()).toBe(true);
  });

  test('hold a row once, and remember that it was hinted at again', () => {
    const slots = new Slots(2);
    slots.reserveNow();
    slots.reserveNow();
    expect([slots.occupy('row'), slots.occupy('row')]).toEqual([true, false]);

    expect(slots.isFree()).toBe(true);
    expect(slots.leave('row')).toBe(true);
    expect(slots.leave('row')).toBe(false);
  });

  test('can be waited for', async () => {
    const slots = new Slots(1);
    slots.reserveNow();
    const reserved = slots.reserve();

    slots.release();

    expect(await reserved).toBe(true);
    expect(slots.isFree()).toBe(false);
  });

  test('are one more for each yielded slot, which is taken back once', () => {
    const slots = new Slots(1);
    slots.reserveNow();
    const resume = slots.yieldOne();
    expect(slots.reserveNow()).toBe(true);

    resume();
    resume();
    slots.release();

    expect(slots.reserveNow()).toBe(false);
  });

  test('are refused once they are closed, to waiting callers too', async () => {
    const slots = new Slots(1);
    slots.reserveNow();
    const reserved = slots.reserve();

    slots.close();
    slots.release();

    expect(await reserved).toBe(false);
    expect(slots.reserveNow()).toBe(false);
  });
});
