import type { ReactNode } from 'react';

/** An empty list that is a good sign. */
export const Quiet = ({ children }: { children: ReactNode }) => (
  <p className="px-4 py-6 text-center text-[13px] text-muted">{children}</p>
);
