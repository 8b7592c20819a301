import { useEffect, useState } from 'react';

const pauseMs = 250;

/** A typed value, updated once the user pauses, so that not every keystroke is a request. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
