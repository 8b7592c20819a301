import { describe, expect, test } from 'vitest';
import { createPlaces } from './places.ts';

describe('places', () => {
  test('are as many as there were said to be', () => {
    const places = createPlaces(2);

    expect([places.reserveNow(), places.reserveNow(), places.reserveNow()]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('are free again when the row in them leaves or nobody came', () => {
    const places = createPlaces(1);
    places.reserveNow();
    places.occupy('row');
    expect(places.isFree()).toBe(false);
    places.leave('row');
    expect(places.reserveNow()).toBe(true);
    places.release();
    expect(places.isFree()).toBe(true);
  });

  test('hold a row once, and know that it came again', () => {
    const places = createPlaces(2);
    places.reserveNow();
    places.reserveNow();
    expect([places.occupy('row'), places.occupy('row')]).toEqual([true, false]);

    expect(places.isFree()).toBe(true);
    expect(places.leave('row')).toBe(true);
    expect(places.leave('row')).toBe(false);
  });

  test('are waited for', async () => {
    const places = createPlaces(1);
    places.reserveNow();
    const reserved = places.reserve();

    places.release();

    expect(await reserved).toBe(true);
    expect(places.isFree()).toBe(false);
  });

  test('are one more for each that is lent, which is given back once', () => {
    const places = createPlaces(1);
    places.reserveNow();
    const giveBack = places.lend();
    expect(places.reserveNow()).toBe(true);

    giveBack();
    giveBack();
    places.release();

    expect(places.reserveNow()).toBe(false);
  });

  test('are nobody’s once they are closed, and whoever waits is told', async () => {
    const places = createPlaces(1);
    places.reserveNow();
    const reserved = places.reserve();

    places.close();
    places.release();

    expect(await reserved).toBe(false);
    expect(places.reserveNow()).toBe(false);
  });
});
