import { hashKey } from '@tanstack/react-query';
import { useState } from 'react';
import { jsonText } from './ObjectField.tsx';

interface Draft {
  readonly value: unknown;
  /** The same as JSON; while that is malformed, the value is what it was before. */
  readonly text: string;
}

export type Way = 'form' | 'json';
export type Input = ReturnType<typeof useInput>;

/**
 * The input of a skill while it is filled in, as a form or as JSON. Until somebody changes something it
 * is `begin`, which may still come; `stored` is one that was saved before.
 */
export function useInput(begin: unknown, stored?: unknown) {
  const [own, setOwn] = useState(stored === undefined ? undefined : draftOf(stored));
  const [way, setWay] = useState<Way>('form');
  const [filled, setFilled] = useState(0);
  const draft = own ?? draftOf(begin);
  const fault = faultOf(draft.text);
  return {
    ...draft,
    /** What is wrong with the JSON. */
    fault,
    way,
    /** Another one makes a form anew. */
    filled,
    change: (value: unknown) => setOwn(draftOf(value)),
    write(text: string) {
      setOwn({ text, value: faultOf(text) === undefined ? read(text) : draft.value });
    },
    /** Replaces all of it. */
    fill(value: unknown) {
      setOwn(draftOf(value));
      setFilled((n) => n + 1);
    },
    turnTo(next: Way) {
      if (fault !== undefined) setOwn(draftOf(draft.value));
      setWay(next);
    },
    /** To be told before `begin` becomes another one: what still is the old one goes with it. */
    leave() {
      if (own !== undefined && isSame(own.value, begin)) setOwn(undefined);
    },
  };
}

const draftOf = (value: unknown): Draft => ({ value, text: jsonText(value) ?? '' });

/** Nothing is an empty input. */
const read = (text: string): unknown => (text.trim() === '' ? {} : JSON.parse(text));

/** What is wrong with a text that is to be JSON; undefined when nothing is. */
function faultOf(text: string): string | undefined {
  try {
    read(text);
    return undefined;
  } catch (error) {
    return `This is no JSON: ${(error as Error).message}`;
  }
}

/** In whatever order their fields come. */
const isSame = (a: unknown, b: unknown) => hashKey([a]) === hashKey([b]);
