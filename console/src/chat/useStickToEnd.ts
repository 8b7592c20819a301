import { useEffect, useRef, useState } from 'react';

/** A reader who is nearer to the end than this follows new content. */
const nearPx = 48;

/**
 * Keeps a box that scrolls at its end while its reader is there. What is added above keeps the lines that are
 * read where they are.
 */
export function useStickToEnd() {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  /** Set while what is added is added above. */
  const fromEnd = useRef<number | null>(null);
  useEffect(() => {
    const [outer, inner] = [box.current, content.current];
    if (outer === null || inner === null) return;
    let top = outer.scrollTop;
    const look = () => {
      const isNear = outer.scrollHeight - outer.scrollTop - outer.clientHeight < nearPx;
      // Pictures may grow between a scroll to the end and its event: only a scroll up leaves the end.
      follows.current = isNear || (follows.current && outer.scrollTop >= top);
      top = outer.scrollTop;
      setAtEnd(follows.current);
    };
    const resized = new ResizeObserver(() => {
      if (fromEnd.current !== null) outer.scrollTop = outer.scrollHeight - fromEnd.current;
      else if (follows.current) outer.scrollTop = outer.scrollHeight;
      look();
    });
    resized.observe(inner);
    resized.observe(outer);
    const scrolled = () => {
      fromEnd.current = null;
      look();
    };
    outer.addEventListener('scroll', scrolled, { passive: true });
    return () => {
      resized.disconnect();
      outer.removeEventListener('scroll', scrolled);
    };
  }, []);
  function toEnd() {
    follows.current = true;
    fromEnd.current = null;
    box.current?.scrollTo({ top: box.current.scrollHeight });
  }
  /** To be called before something is added above. */
  function keepPlace() {
    if (box.current) fromEnd.current = box.current.scrollHeight - box.current.scrollTop;
  }
  return { box, content, isAtEnd, toEnd, keepPlace };
}
