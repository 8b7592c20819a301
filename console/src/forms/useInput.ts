import { hashKey } from '@tanstack/react-query';
import { useState } from 'react';
import { jsonText } from './ObjectField.tsx';

interface Draft {
  readonly value: unknown;
  /** The text that the user typed; null where it equals the value as JSON. */
  readonly text: string | null;
  /** What is wrong with the text; the value is what it was before. */
  readonly fault?: string;
  /** The source of the value: a form fills in values that a choice or a rule determines. */
  readonly by: 'storage' | 'form' | 'user';
}

export type Way = 'form' | 'json';
export type Input = ReturnType<typeof useInput>;

/**
 * The input of a skill while it is filled in, as a form or as JSON. Until the user changes it, it
 * is `begin`, which may arrive later; `stored` is an input that was saved before.
 */
export function useInput(begin: unknown, stored?: unknown) {
  const [own, setOwn] = useState<Draft | undefined>(
    stored === undefined ? undefined : { value: stored, text: null, by: 'storage' },
  );
  const [way, setWay] = useState<Way>('form');
  const [filled, setFilled] = useState(0);
  const { value, text, fault } = own ?? { value: begin, text: null };
  return {
    value,
    /** The same as JSON. */
    get text() {
      return text ?? jsonText(value) ?? '';
    },
    /** What is wrong with the JSON; the value is what it was before. */
    fault,
    way,
    /** A change recreates the form. */
    filled,
    /** Whether it is the saved input. */
    isStored: own?.by === 'storage',
    /** `isByForm`: the form made the change, not the user. */
    change(next: unknown, isByForm = false) {
      setOwn((before) => ({
        value: next,
        text: null,
        by: isByForm ? (before?.by ?? 'form') : 'user',
      }));
    },
    write(next: string) {
      setOwn({ value, ...reading(next), text: next, by: 'user' });
    },
    /** Replaces all of it. */
    fill(next: unknown) {
      setOwn({ value: next, text: null, by: 'user' });
      setFilled((n) => n + 1);
    },
    turnTo(next: Way) {
      // What is malformed cannot be shown in a form.
      if (own?.fault !== undefined) setOwn({ value, text: null, by: own.by });
      setWay(next);
    },
    /** To be called before `begin` changes: an input that still equals the old one is dropped. */
    leave() {
      if (own !== undefined && (own.by === 'form' || isSame(own.value, begin))) setOwn(undefined);
    },
  };
}

/** Nothing is an empty input. */
function reading(text: string): { value: unknown } | { fault: string } {
  try {
    return { value: text.trim() === '' ? {} : JSON.parse(text) };
  } catch (error) {
    return { fault: `This is not valid JSON: ${(error as Error).message}` };
  }
}

/** Equal in any order of their fields. */
const isSame = (a: unknown, b: unknown) => hashKey([a]) === hashKey([b]);
