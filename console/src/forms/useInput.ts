import { hashKey } from '@tanstack/react-query';
import { useState } from 'react';
import { jsonText, parseObject } from './ObjectField.tsx';
import { useExample } from './useExample.ts';

/**
 * The input of what runs a skill by itself, as it is written. Until somebody writes one it is the
 * skill's example, and one that still is the example goes when another skill is chosen.
 */
export function useInput(skill: string, stored: Record<string, unknown> | undefined) {
  const example = useExample(skill);
  const [own, setOwn] = useState(stored && jsonText(stored));
  return {
    text: own ?? jsonText(example ?? {}),
    write: setOwn,
    /** To be told before another skill is chosen. */
    leaveSkill() {
      if (own !== undefined && isSame(parseObject(own).value, example)) setOwn(undefined);
    },
  };
}

/** In whatever order their fields come. */
const isSame = (a: unknown, b: unknown) => hashKey([a]) === hashKey([b]);
