import { useEffect, useState } from 'react';

const pauseMs = 250;

/** A value that somebody is typing, once they pause: what asks the platform follows this one. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
